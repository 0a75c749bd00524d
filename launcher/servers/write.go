package servers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/secrets"
)

// A backup is what a client's settings were before they were changed. Tokens are
// not in it but in the vault, by the ids that stand in their places.
type backup struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	Before  string `json:"before"` // digest of the file as it was
	After   string `json:"after"`  // and of what was written
	Parts   []part `json:"parts"`
}

// A part is some text, or the secret whose value stands there in quotes.
type part struct {
	Text   []byte `json:"text,omitempty"`
	Secret string `json:"secret,omitempty"`
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Write changes the settings. What has to be there for the changed ones to work is
// written first: policies, the tokens in the vault, the backup.
func (a *Adoption) Write(ctx context.Context, vault secrets.Provider) error {
	if !a.Changed() {
		return nil
	}
	for i := range a.Servers {
		if s := &a.Servers[i]; s.State == "wrapped" {
			if err := a.policy(s); err != nil {
				return err
			}
		}
	}
	for _, v := range a.hidden {
		if err := keep(ctx, vault, v); err != nil {
			return err
		}
	}
	if err := a.backup(); err != nil {
		return input(fmt.Errorf("keeping a copy of %s: %w", a.Path, err))
	}
	if err := adopted(a.home, a.real, true); err != nil {
		return err
	}
	if err := replace(a.real, a.old, a.new, a.mode); err != nil {
		return err
	}
	a.Written = true
	return nil
}

// policy writes what a server may have, unless its operator has said so already.
func (a *Adoption) policy(s *Adopted) error {
	if err := home.Make(filepath.Dir(s.Policy)); err != nil {
		return input(err)
	}
	var preset []byte
	if name := presetOf(s.command); name != "" {
		var err error
		if preset, _, err = policy.PresetText(name, a.home.Preset(name), policy.Options{Stat: os.Stat}); err != nil {
			return input(err)
		}
	}
	f, err := os.OpenFile(s.Policy, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return input(err)
	}
	_, err = f.WriteString(startingPolicy(s, a.Path, preset))
	return input(errors.Join(err, f.Sync(), f.Close()))
}

// keep puts a token into the vault, and takes no other one's place.
func keep(ctx context.Context, vault secrets.Provider, v value) error {
	have, err := vault.Get(ctx, v.id)
	switch {
	case err == nil && string(have) == v.text:
		return nil
	case err == nil:
		return input(fmt.Errorf("the secret %s has another value than %s in these settings; rlp secrets delete %s, or give "+
			"the server another name", v.id, v.variable, v.id))
	case !errors.Is(err, fs.ErrNotExist):
		return input(fmt.Errorf("keeping %s in the vault: %w", v.id, err))
	}
	if err := vault.Put(ctx, v.id, []byte(v.text)); err != nil {
		return input(fmt.Errorf("keeping %s in the vault: %w", v.id, err))
	}
	return nil
}

// backups is the folder of what settings were.
func backups(h home.Home) string { return filepath.Join(h.Servers(), "before") }

// copies are the backups of a file, the oldest first.
func copies(h home.Home, path string) []string {
	list, _ := filepath.Glob(filepath.Join(backups(h), digest([]byte(path))[7:39]+"-*.json")) // the pattern is well formed
	slices.Sort(list)
	return list
}

func (a *Adoption) backup() error {
	b := backup{Version: 1, Path: a.real, Before: digest(a.old), After: digest(a.new)}
	at := 0
	slices.SortFunc(a.hidden, func(x, y value) int { return x.span[0] - y.span[0] })
	for _, v := range a.hidden {
		b.Parts = append(b.Parts, part{Text: a.old[at:v.span[0]]}, part{Secret: v.id.String()})
		at = v.span[1]
	}
	b.Parts = append(b.Parts, part{Text: a.old[at:]})
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := home.Make(backups(a.home)); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%04d.json", digest([]byte(a.real))[7:39], len(copies(a.home, a.real))+1)
	f, err := os.OpenFile(filepath.Join(backups(a.home), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// replace puts data in the place of a file that still is what it was, whole or not
// at all.
func replace(path string, was, data []byte, mode fs.FileMode) error {
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, was) {
		return input(errors.Join(fmt.Errorf("%s was changed meanwhile; look at it again", path), err))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rlp-*")
	if err != nil {
		return input(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return input(err)
	}
	return input(os.Rename(f.Name(), path))
}

// Undo makes the settings what they were before they were changed last, to the byte.
// What was changed in them since is not lost: they have to be as they were written.
func Undo(ctx context.Context, h home.Home, path string, vault secrets.Provider) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return input(err)
	}
	list := copies(h, real)
	if len(list) == 0 {
		return usage("%s was not changed by rlp mcp adopt --write", path)
	}
	last := list[len(list)-1]
	text, err := tomlfile.ReadFile(last, 2*mostSettings)
	if err != nil {
		return input(err)
	}
	var b backup
	if err := strictjson.Unmarshal(text, &b); err != nil {
		return input(fmt.Errorf("%s is damaged: %w", last, err))
	}
	now, err := os.ReadFile(real)
	if err != nil {
		return input(err)
	}
	if digest(now) != b.After {
		return input(fmt.Errorf("%s was changed since, and would lose that; take rlp mcp wrap out by hand (%s has what it was)",
			path, last))
	}
	old, err := b.whole(ctx, vault)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return input(err)
	}
	if err := replace(real, now, old, info.Mode().Perm()); err != nil {
		return err
	}
	return input(errors.Join(os.Remove(last), adopted(h, real, len(list) > 1)))
}

// adopted notes whether a file is settings by which a client starts its servers
// through rlp, which no agent writes.
func adopted(h home.Home, path string, is bool) error {
	list, err := compose.Adopted(h)
	if err != nil || slices.Contains(list, path) == is {
		return err
	}
	if strings.ContainsRune(path, '\n') {
		return usage("%q: the path has a line break in it", path)
	}
	if list = slices.DeleteFunc(list, func(p string) bool { return p == path }); is {
		list = append(list, path)
	}
	f, err := os.CreateTemp(h.Servers(), ".new-*") // mode 0600
	if err != nil {
		return input(err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(strings.Join(append(list, ""), "\n"))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return input(err)
	}
	return input(os.Rename(f.Name(), h.Adopted()))
}

// whole is the file as it was.
func (b *backup) whole(ctx context.Context, vault secrets.Provider) ([]byte, error) {
	var out strings.Builder
	for _, p := range b.Parts {
		out.Write(p.Text)
		if p.Secret == "" {
			continue
		}
		id, err := secrets.ParseID(p.Secret)
		if err != nil {
			return nil, input(err)
		}
		v, err := vault.Get(ctx, id)
		if err != nil {
			return nil, input(fmt.Errorf("the token %s of the settings is not to be had: %w", id, err))
		}
		out.WriteString(tomlfile.Literal(string(v)))
	}
	if old := []byte(out.String()); digest(old) == b.Before {
		return old, nil
	}
	return nil, input(errors.New("a token of the settings is another one now, so that they cannot be made what they were"))
}
