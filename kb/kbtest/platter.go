package kbtest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// A Platter is a disk that can lose power: it remembers of files the bytes, and
// of directories the names, as they were when they were last synced. All the
// rest is what a machine that loses power may lose. It is a journal's Disk.
type Platter struct {
	mu    sync.Mutex
	files []kept
	names map[string]map[string]fs.FileInfo // by directory
	syncs int
	fails error
}

// kept is a file as it was when it was last synced.
type kept struct {
	info fs.FileInfo
	data []byte
}

// of is what was kept of a file; nil before it was ever synced.
func (p *Platter) of(info fs.FileInfo) *kept {
	for i := range p.files {
		if os.SameFile(p.files[i].info, info) {
			return &p.files[i]
		}
	}
	return nil
}

// NewPlatter returns a disk with nothing on it.
func NewPlatter() *Platter {
	return &Platter{names: map[string]map[string]fs.FileInfo{}}
}

// Fail makes every sync from now on fail with err.
func (p *Platter) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// Syncs is how many files were synced.
func (p *Platter) Syncs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.syncs
}

// SyncFile remembers the bytes of f.
func (p *Platter) SyncFile(f *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return err
	}
	if k := p.of(info); k != nil {
		k.data = data
	} else {
		p.files = append(p.files, kept{info, data})
	}
	p.syncs++
	return nil
}

// SyncDir remembers the names in dir.
func (p *Platter) SyncDir(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	names, err := namesIn(dir)
	if err == nil {
		p.names[dir] = names
	}
	return err
}

func namesIn(dir string) (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]fs.FileInfo{}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()] = info
	}
	return names, nil
}

// pageBytes is what a machine writes to a disk at once.
const pageBytes = 4096

// LosePower makes in the directory to what is left of the files in dir. Of what
// was not synced it leaves the names and pages that spare says, and none when
// spare is nil: a machine writes back what it likes, in any order.
func (p *Platter) LosePower(dir, to string, spare func() bool) error {
	if spare == nil {
		spare = func() bool { return false }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, err := namesIn(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	left := p.names[dir]
	for name, info := range now {
		if _, kept := left[name]; !kept && spare() {
			left = with(left, name, info)
		}
	}
	for name, info := range left {
		var data []byte
		if k := p.of(info); k != nil {
			data = k.data
		}
		if there, ok := now[name]; ok && os.SameFile(there, info) {
			if data, err = spared(filepath.Join(dir, name), data, spare); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func with(names map[string]fs.FileInfo, name string, info fs.FileInfo) map[string]fs.FileInfo {
	all := map[string]fs.FileInfo{name: info}
	maps.Copy(all, names)
	return all
}

// spared is data with those pages of the file as it is now that spare says.
func spared(path string, data []byte, spare func() bool) ([]byte, error) {
	now, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	left := make([]byte, len(now))
	copy(left, data)
	end := len(data)
	for at := 0; at < len(now); at += pageBytes {
		if spare() {
			end = max(end, at+copy(left[at:min(at+pageBytes, len(left))], now[at:]))
		}
	}
	return left[:end], nil
}
