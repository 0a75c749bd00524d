//go:build linux || darwin

package jail

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
)

// A pathCase is one row of testdata/path_cases.json, which says what it means.
type pathCase struct {
	ID    string
	Setup []string
	Op    string
	Path  string
	To    string
	Text  string
	Want  string
}

func pathCases(t *testing.T) []pathCase {
	t.Helper()
	data, err := os.ReadFile("testdata/path_cases.json")
	must(t, err)
	var doc struct{ Cases []pathCase }
	must(t, json.Unmarshal(data, &doc))
	if len(doc.Cases) < 50 {
		t.Fatalf("only %d cases", len(doc.Cases))
	}
	return doc.Cases
}

// setUp makes what the case begins with.
func (c pathCase) setUp(t *testing.T, p place) {
	t.Helper()
	for _, line := range c.Setup {
		line = strings.ReplaceAll(line, "$OUT", p.out)
		if name, to, ok := strings.Cut(line, " => "); ok {
			must(t, os.Symlink(to, p.grant+"/"+name))
		} else if name, to, ok := strings.Cut(line, " == "); ok {
			must(t, os.Link(to, p.grant+"/"+name))
		} else if name, ok := strings.CutSuffix(line, "|"); ok {
			must(t, syscall.Mkfifo(p.grant+"/"+name, 0o644))
		} else if name, ok := strings.CutSuffix(line, "/"); ok {
			must(t, os.Mkdir(p.grant+"/"+name, 0o755))
		} else {
			name, text, _ := strings.Cut(line, "=")
			put(t, p.grant+"/"+name, text)
		}
	}
}

// A written path is one as WASI hands it on.
type written struct {
	path    string
	mustDir bool
}

// join is what WASI makes of a guest's path: cleaned as text, below dir unless
// it is absolute.
func join(dir, p string) (written, wasi.Errno) {
	if p == "" {
		return written{}, wasi.ENOENT
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	if !path.IsAbs(p) {
		p = dir + "/" + p
	}
	return written{path.Clean(p), last == "" || last == "." || last == ".."}, 0
}

var wanted = map[string]wasi.Errno{
	"ENOENT": wasi.ENOENT, "EEXIST": wasi.EEXIST, "ENOTDIR": wasi.ENOTDIR, "ELOOP": wasi.ELOOP,
}

// run does the case's operation on a jail, and says what was read.
func (c pathCase) run(j *Jail, dir string) (string, wasi.Errno) {
	text := c.Path // of a new link
	if c.Op == "symlink" {
		c.Path, c.To = c.To, ""
	}
	p, e := join(dir, c.Path)
	if e != 0 {
		return "", e
	}
	to, _ := join(dir, c.To)
	switch c.Op {
	case "read":
		return readCase(j, p)
	case "list":
		return listCase(j, p)
	case "create":
		return "", spill(j, p.path, c.Text, wasi.OpenFlags{Create: true, Trunc: true})
	case "create-excl":
		return "", spill(j, p.path, c.Text, wasi.OpenFlags{Create: true, Exclusive: true})
	case "append":
		return "", spill(j, p.path, c.Text, wasi.OpenFlags{Append: true})
	case "lstat":
		st, e := j.Stat(p.path, p.mustDir, false)
		return map[wasi.FileType]string{
			wasi.TypeSymlink: "symlink", wasi.TypeRegular: "file",
			wasi.TypeDirectory: "dir",
		}[st.Type], e
	case "readlink":
		buf := make([]byte, 256)
		n, e := j.Readlink(p.path, buf)
		return string(buf[:n]), e
	case "unlink":
		return "", j.Unlink(p.path, p.mustDir)
	case "rmdir":
		return "", j.Rmdir(p.path)
	case "mkdir":
		return "", j.Mkdir(p.path)
	case "rename":
		return "", j.Rename(p.path, to.path, p.mustDir || to.mustDir)
	case "utimes":
		return "", j.SetTimes(p.path, p.mustDir, true, wasi.Times{Mtim: 1e18, OmitAtim: true})
	case "symlink":
		return "", j.Symlink(text, p.path)
	}
	panic("unknown operation " + c.Op)
}

func readCase(j *Jail, p written) (string, wasi.Errno) {
	f, e := j.Open(p.path, p.mustDir, wasi.OpenFlags{Read: true})
	if e != 0 {
		return "", e
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, e := f.Read(buf)
	return string(buf[:n]), e
}

func listCase(j *Jail, p written) (string, wasi.Errno) {
	f, e := j.Open(p.path, p.mustDir, wasi.OpenFlags{Read: true, Directory: true})
	if e != 0 {
		return "", e
	}
	defer f.Close()
	entries, e := f.Readdir(0, 100)
	var names []string
	for _, d := range entries {
		names = append(names, d.Name)
	}
	return strings.Join(names, " "), e
}

// TestPathCases runs every case relative to a descriptor of the grant and with
// absolute paths, with the kernel resolving and without.
//
//rlp:holds K13 K15
func TestPathCases(t *testing.T) {
	for _, c := range pathCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			eachResolver(t, func(t *testing.T, walk bool) {
				for _, absolute := range []bool{false, true} {
					c.check(t, walk, absolute)
				}
			})
		})
	}
}

func (c pathCase) check(t *testing.T, walk, absolute bool) {
	p := newPlace(t)
	c.setUp(t, p)
	j, g := open(t, walk, rule{p.grant, all})
	before := p.outside(t)
	c.Path = strings.ReplaceAll(c.Path, "$OUT", p.out)
	if absolute && c.Op != "symlink" && c.Path != "" && !path.IsAbs(c.Path) {
		c.Path = p.grant + "/" + c.Path
	}
	if absolute && c.To != "" {
		c.To = p.grant + "/" + c.To
	}
	text, e := c.run(j, p.grant)
	switch {
	case p.outside(t) != before:
		t.Errorf("absolute %v: something outside has changed", absolute)
	case strings.Contains(text, "CANARY"), strings.Contains(text, "secret.txt"), strings.Contains(text, "root:"):
		if c.Op != "readlink" {
			t.Errorf("absolute %v: read %q", absolute, text)
		}
	case c.Want == "ok" && (e != 0 || c.Op != "create" && c.Text != "" && text != c.Text):
		t.Errorf("absolute %v: %q, errno %d; want %q", absolute, text, e, c.Text)
	case c.Want == "deny" && e == 0:
		t.Errorf("absolute %v: allowed, read %q", absolute, text)
	case wanted[c.Want] != e && wanted[c.Want] != 0:
		t.Errorf("absolute %v: errno %d, want %s", absolute, e, c.Want)
	}
	if attacks[c.ID] && e == wasi.EACCES && g.denied() == 0 {
		t.Errorf("absolute %v: refused, but no refusal is on record", absolute)
	}
	if attacks[c.ID] && e != wasi.EACCES {
		t.Errorf("absolute %v: errno %d, want EACCES", absolute, e)
	}
}

// attacks are the cases in which plain file functions read or change what lies
// outside the grant.
var attacks = map[string]bool{
	"parent-only": true, "absolute": true, "absolute-out": true, "sibling-prefix": true,
	"out-abs": true, "out-dir": true, "out-dir-list": true,
	"out-lstat-slash": true, "out-write": true, "out-append": true, "out-create": true,
	"out-create-dir": true, "out-unlink": true,
	"out-rename-to": true, "out-utimes": true, "make-abs-link": true, "proc-root": true, "proc-fd": true, "proc-cwd": true,
}

// TestPathCasesControl shows that each attack works on plain file functions.
func TestPathCasesControl(t *testing.T) {
	for _, c := range pathCases(t) {
		if !attacks[c.ID] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			p := newPlace(t)
			c.setUp(t, p)
			before := p.outside(t)
			c.Path = strings.ReplaceAll(c.Path, "$OUT", p.out)
			if err := c.plain(p.grant); err != nil {
				t.Fatalf("the attack does not work: %v", err)
			}
			if changes(c.Op) && p.outside(t) == before {
				t.Error("the attack changed nothing")
			}
		})
	}
}

func changes(op string) bool {
	switch op {
	case "read", "list", "lstat", "symlink":
		return false
	}
	return true
}

// plain does the operation as a program without a jail would.
func (c pathCase) plain(dir string) error {
	at := func(p string) string {
		if path.IsAbs(p) {
			return p
		}
		return dir + "/" + p
	}
	p := at(c.Path)
	switch c.Op {
	case "read":
		text, err := os.ReadFile(p)
		if err == nil && len(text) == 0 {
			err = errors.New("nothing read")
		}
		return err
	case "list":
		_, err := os.ReadDir(p)
		return err
	case "lstat":
		_, err := os.Lstat(p)
		return err
	case "create":
		return os.WriteFile(p, []byte(c.Text), 0o644)
	case "create-excl":
		return openAndWrite(p, c.Text, os.O_CREATE|os.O_EXCL)
	case "append":
		return openAndWrite(p, c.Text, os.O_APPEND)
	case "unlink", "rmdir":
		return os.Remove(p)
	case "rename":
		return os.Rename(p, at(c.To))
	case "utimes":
		return os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0))
	case "symlink":
		return os.Symlink(c.Path, at(c.To))
	}
	return errors.ErrUnsupported
}

func openAndWrite(p, text string, flags int) error {
	f, err := os.OpenFile(p, flags|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
