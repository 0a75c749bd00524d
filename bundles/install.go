package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// installing begins the names of folders in which a bundle is on its way in or
// out: no agent is called so.
const installing = ".install-"

// Install writes a bundle into the folder dir of installed agents, under its
// agent's name, for its owner alone, and returns where that is. Whoever opens the
// agent meanwhile finds the old bundle whole or the new one whole. What is there
// is the same bundle afterwards, read back and verified, or nothing has changed.
func (b *Bundle) Install(dir string) (string, error) {
	to := filepath.Join(dir, b.Manifest.Agent.String())
	fail := func(err error) (string, error) { return "", fmt.Errorf("installing %s: %w", b.Manifest.Agent, err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	temp, err := os.MkdirTemp(dir, installing+"*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(temp)
	if err := writePrivate(temp, b.Files, b.Manifest); err != nil {
		return fail(err)
	}
	written, err := Open(temp)
	if err != nil {
		return fail(err)
	}
	if written.Digest != b.Digest {
		return fail(errors.New("what was written is not what was read; is anybody else writing to " + dir + "?"))
	}
	if info, err := os.Lstat(to); err == nil && !info.IsDir() {
		return fail(fmt.Errorf("%s is in the way: it is %s, and not a folder that rlp made; take it away first", to,
			modeWord(info.Mode())))
	}
	if err := replace(temp, to); err != nil {
		return fail(err)
	}
	return to, nil
}

// Remove takes an installed agent out of dir. It wraps [fs.ErrNotExist] when
// there is none.
func Remove(dir, agent string) error {
	temp, err := os.MkdirTemp(dir, installing+"*")
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", agent, err)
	}
	defer os.RemoveAll(temp)
	// Half an agent is never there to be launched.
	return os.Rename(filepath.Join(dir, agent), filepath.Join(temp, "gone"))
}

// Installed are the names in a folder of installed agents, sorted; what is on its
// way in or out is none of them.
func Installed(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// writePrivate writes a tree for its owner alone, and has it on the disk before
// it returns.
func writePrivate(dir string, tree map[string][]byte, m *Manifest) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range sortedKeys(tree) {
		if folder := path.Dir(name); folder != "." {
			if err := root.MkdirAll(filepath.FromSlash(folder), 0o700); err != nil {
				return err
			}
		}
		if err := writeSynced(root, filepath.FromSlash(name), tree[name], m.mode(name, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

func writeSynced(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
