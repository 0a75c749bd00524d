package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zalando/go-keyring"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/base/home"
)

// keychain keeps values in the keyring of the desktop (Secret Service, macOS
// Keychain). A keyring cannot say what it holds, so that the ids lie in a file
// of the home.
type keychain struct{ service, dir string }

// encoded begins values as they lie in the keyring: those of some systems hold
// text only.
const encoded = "base64:"

func (k *keychain) Get(ctx context.Context, id ID) ([]byte, error) {
	var text string
	err := k.ask(ctx, func() (err error) {
		text, err = keyring.Get(k.service, id.String())
		return err
	})
	if errors.Is(err, keyring.ErrNotFound) {
		return nil, notThere(id)
	}
	if err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(text, encoded); ok {
		if value, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return value, nil
		}
	}
	return []byte(text), nil // put there by another program
}

func (k *keychain) Put(ctx context.Context, id ID, value []byte) error {
	if err := CheckValue(value); err != nil {
		return err
	}
	return k.change(func(ids []ID) ([]ID, error) {
		err := k.ask(ctx, func() error {
			return keyring.Set(k.service, id.String(), encoded+base64.StdEncoding.EncodeToString(value))
		})
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return ids, err
	})
}

func (k *keychain) Delete(ctx context.Context, id ID) error {
	return k.change(func(ids []ID) ([]ID, error) {
		err := k.ask(ctx, func() error { return keyring.Delete(k.service, id.String()) })
		if errors.Is(err, keyring.ErrNotFound) {
			err = notThere(id)
		}
		return slices.DeleteFunc(ids, func(other ID) bool { return other == id }), err
	})
}

func (k *keychain) List(context.Context) ([]ID, error) { return k.ids() }

func (k *keychain) idsPath() string { return filepath.Join(k.dir, "keyring-ids") }

func (k *keychain) ids() ([]ID, error) {
	err := privateDir(k.dir, false)
	var data []byte
	if err == nil {
		data, err = home.ReadPrivate(k.idsPath(), 1<<20)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &UnavailableError{Provider: "keyring", Why: "its list of ids is not private", Err: err}
	}
	var ids []ID
	for line := range strings.Lines(string(data)) {
		if id, err := ParseID(strings.TrimSpace(line)); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// change runs do and stores the list that it returns, whatever came of it.
func (k *keychain) change(do func(ids []ID) ([]ID, error)) error {
	if err := privateDir(k.dir, true); err != nil {
		return &UnavailableError{Provider: "keyring", Why: "its list of ids is not private", Err: err}
	}
	return locked(k.dir, func() error {
		ids, err := k.ids()
		if err != nil {
			return err
		}
		ids, err = do(ids)
		var b strings.Builder
		for _, id := range sortIDs(ids) {
			fmt.Fprintln(&b, id)
		}
		return errors.Join(err, home.WritePrivate(k.idsPath(), []byte(b.String())))
	})
}

// ask asks the keyring, which may ask its user in turn, until ctx ends.
func (k *keychain) ask(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	guard.Go(do, func(err error) { done <- err })
	select {
	case <-ctx.Done():
		return fmt.Errorf("asking the keyring: %w", ctx.Err())
	case err := <-done:
		if err == nil {
			return nil
		}
		return &UnavailableError{Provider: "keyring", Why: "no keyring answers here", Err: err}
	}
}
