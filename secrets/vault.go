package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
)

// vault is the age vault: dir/identity is the key, and each value a file of its
// own, dir/vault/<scope>/<name>.age, so that using one opens no other. What is
// encrypted names tenant and id: a file that was moved to another's place is
// refused.
type vault struct{ dir, tenant string }

// sealed is what a file of the vault holds.
type sealed struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Value  []byte `json:"value"`
}

// maxSealed bounds a file of the vault: base64 and the rest around a value.
const maxSealed = 2*MaxValue + 4096

func (v *vault) identityPath() string { return filepath.Join(v.dir, "identity") }

func (v *vault) path(id ID) string {
	return filepath.Join(v.dir, "vault", id.scope, id.name+".age")
}

// Init makes the vault in dir, and reports whether there was none before. An
// identity that is there stays as it is: without it every value would be lost.
func Init(dir string) (created bool, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return false, fmt.Errorf("making the vault: %w", err)
	}
	v := &vault{dir: dir}
	err = privateDir(dir, true)
	if err == nil {
		err = privateDir(filepath.Join(dir, "vault"), true)
	}
	if err == nil {
		err = locked(dir, func() error {
			_, err := v.identity()
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			created = true
			return v.newIdentity()
		})
	}
	if err != nil {
		return false, fmt.Errorf("making the vault: %w", err)
	}
	return created, nil
}

func (v *vault) newIdentity() error {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("# public key: %s\n%s\n", key.Recipient(), key)
	return home.WritePrivate(v.identityPath(), []byte(text))
}

func (v *vault) identity() (*age.X25519Identity, error) {
	if err := privateDir(v.dir, false); err != nil {
		return nil, err
	}
	data, err := home.ReadPrivate(v.identityPath(), 64<<10)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, &ModeError{Path: v.identityPath(), Why: "holds no age identity"} // whose text stays out of the error
		}
		return key, nil
	}
	return nil, &ModeError{Path: v.identityPath(), Why: "holds no age identity"}
}

// open is the key of a vault that has to be there.
func (v *vault) open() (*age.X25519Identity, error) {
	key, err := v.identity()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &UnavailableError{Provider: "age", Why: "there is no vault yet; rlp secrets init makes it"}
	}
	if err != nil {
		return nil, &UnavailableError{Provider: "age", Why: "the vault is not private", Err: err}
	}
	return key, nil
}

func (v *vault) Get(_ context.Context, id ID) ([]byte, error) {
	key, err := v.open()
	if err != nil {
		return nil, err
	}
	s, err := v.read(key, id)
	if err != nil {
		return nil, err
	}
	return s.Value, nil
}

func (v *vault) read(key age.Identity, id ID) (sealed, error) {
	if err := v.folders(id, false); err != nil {
		return sealed{}, err
	}
	data, err := home.ReadPrivate(v.path(id), maxSealed)
	if errors.Is(err, fs.ErrNotExist) {
		return sealed{}, notThere(id)
	}
	if err != nil {
		return sealed{}, fmt.Errorf("reading %s: %w", id, err)
	}
	plain, err := decrypt(key, data)
	if err != nil {
		return sealed{}, fmt.Errorf("reading %s: %w", id, err)
	}
	defer clear(plain)
	var s sealed
	if err := strictjson.Unmarshal(plain, &s); err != nil {
		return sealed{}, fmt.Errorf("reading %s: the file of the vault is damaged", id)
	}
	if s.Tenant != v.tenant || s.ID != id.String() {
		clear(s.Value)
		return sealed{}, fmt.Errorf("reading %s: the file of the vault belongs to another secret", id)
	}
	return s, nil
}

func decrypt(key age.Identity, data []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(data), key)
	if err != nil {
		return nil, errors.New("the file of the vault was not made with this identity, or is damaged")
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxSealed))
	if err != nil {
		return nil, errors.New("the file of the vault is damaged")
	}
	return plain, nil
}

func (v *vault) folders(id ID, create bool) error {
	for _, dir := range []string{filepath.Join(v.dir, "vault"), filepath.Dir(v.path(id))} {
		if err := privateDir(dir, create); err != nil && !errors.Is(err, fs.ErrNotExist) { // nor is the file there then
			return &UnavailableError{Provider: "age", Why: "the vault is not private", Err: err}
		}
	}
	return nil
}

func (v *vault) Put(_ context.Context, id ID, value []byte) error {
	if err := CheckValue(value); err != nil {
		return err
	}
	key, err := v.open()
	if err != nil {
		return err
	}
	plain, _ := json.Marshal(sealed{Tenant: v.tenant, ID: id.String(), Value: value}) // texts and bytes always can be
	defer clear(plain)
	var file bytes.Buffer
	w, err := age.Encrypt(&file, key.Recipient())
	if err == nil {
		_, err = w.Write(plain)
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		err = locked(v.dir, func() error { return v.store(key, id, file.Bytes()) })
	}
	if err != nil {
		return fmt.Errorf("storing %s: %w", id, err)
	}
	return nil
}

// store writes the file of id. Where names that differ in case are one file,
// the other's value is not written over.
func (v *vault) store(key age.Identity, id ID, file []byte) error {
	if err := v.folders(id, true); err != nil {
		return err
	}
	if _, err := os.Lstat(v.path(id)); err == nil {
		old, err := v.read(key, id)
		if err != nil {
			return err
		}
		clear(old.Value)
	}
	return home.WritePrivate(v.path(id), file)
}

func (v *vault) Delete(_ context.Context, id ID) error {
	if _, err := v.open(); err != nil {
		return err
	}
	if err := v.folders(id, false); err != nil {
		return err
	}
	return locked(v.dir, func() error {
		err := os.Remove(v.path(id))
		if errors.Is(err, fs.ErrNotExist) {
			return notThere(id)
		}
		if err != nil {
			return fmt.Errorf("deleting %s: %w", id, err)
		}
		return home.SyncDir(filepath.Dir(v.path(id)))
	})
}

func (v *vault) List(context.Context) ([]ID, error) {
	if _, err := v.open(); err != nil {
		return nil, err
	}
	var ids []ID
	root := filepath.Join(v.dir, "vault")
	scopes, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("listing the vault: %w", err)
	}
	for _, scope := range scopes {
		if !scope.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, scope.Name()))
		if err != nil {
			return nil, fmt.Errorf("listing the vault: %w", err)
		}
		for _, f := range files {
			name, ok := strings.CutSuffix(f.Name(), ".age")
			if id, err := ParseID("runloop/" + scope.Name() + "/" + name); ok && err == nil {
				ids = append(ids, id)
			}
		}
	}
	return sortIDs(ids), nil
}
