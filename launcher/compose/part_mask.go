package compose

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/pii"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/run"
)

// maskPart lets a run see masks where it may not see what they stand for.
func maskPart(_ *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	spec.Components.Masks = NewMasks(c.Home)
	return nil, nil
}

// maskVersion names the rules of masks for an index that is made by them.
var MaskVersion = "pii-" + strconv.Itoa(pii.Rules)

// Masks mask under the tenant's key, which is read, or made, when the first
// value is masked.
type Masks struct {
	path string
	once sync.Once
	by   *pii.Masker
	err  error
}

// NewMasks are the masks of a tenant.
func NewMasks(h home.Home) *Masks {
	return &Masks{path: filepath.Join(h.Root(), "kb", "mask.key")}
}

func (m *Masks) masker() (*pii.Masker, error) {
	m.once.Do(func() {
		var key []byte
		if key, m.err = maskKey(m.path); m.err == nil {
			m.by = pii.New(key)
		}
	})
	return m.by, m.err
}

// Mask is value with masks for its personal data.
func (m *Masks) Mask(domain string, value []byte) ([]byte, error) {
	by, err := m.masker()
	if err != nil {
		return nil, err
	}
	return by.Mask(domain, value), nil
}

// MaskKey is key with masks for its personal data.
func (m *Masks) MaskKey(domain, key string) (string, error) {
	by, err := m.masker()
	if err != nil {
		return "", err
	}
	return by.MaskKey(domain, key), nil
}

// Marks are the masks in text.
func (m *Masks) Marks(text []byte) []string { return pii.Marks(text) }

// Index is Mask for the index of the store: what cannot be masked has nothing
// that may be found.
func (m *Masks) Index(domain string, value []byte) []byte {
	masked, err := m.Mask(domain, value)
	if err != nil {
		return nil
	}
	return masked
}

// maskKey reads the key of a tenant's masks, and makes it when there is none.
// Whoever makes it first makes it for all: a file that is there stays.
func maskKey(path string) ([]byte, error) {
	key, err := readMaskKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeMaskKey(path); err != nil {
		return nil, fmt.Errorf("making the key of masks: %w", err)
	}
	return readMaskKey(path)
}

func readMaskKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("reading the key of masks: %w", err)
	}
	text, err := tomlfile.ReadOfNoGroup(path, 256)
	if err != nil {
		return nil, fmt.Errorf("reading the key of masks: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != pii.KeySize {
		return nil, fmt.Errorf("reading the key of masks: %s is damaged; put a copy back, or remove it to have other masks "+
			"from now on", path)
	}
	return key, nil
}

// makeMaskKey writes the whole key beside its place and links it there, so that
// nobody reads half of it and nobody's is replaced.
func makeMaskKey(path string) error {
	key := make([]byte, pii.KeySize)
	rand.Read(key)
	f, err := os.CreateTemp(filepath.Dir(path), ".mask-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
