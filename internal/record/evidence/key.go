package evidence

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/mod/sumdb/note"

	"runloop.dev/rlp/internal/base/home"
)

// The files of a log's key, in the folder of its tenant.
const (
	KeyFile    = "audit.key" // signs; its owner alone can read it
	PublicFile = "audit.pub" // the verifier's line, for everybody
)

// originPrefix begins the origin of every log; the log's own random part and the
// tenant follow.
const originPrefix = "runloop.dev/rlp/"

// maxKey bounds the files of a key.
const maxKey = 1 << 10

// A Key signs the checkpoints of one log.
type Key struct {
	signer note.Signer
	public *PublicKey
}

// A PublicKey is what checkpoints of one log are believed by.
type PublicKey struct {
	line     string
	verifier note.Verifier
}

// Origin is the name of the log, the first line of its checkpoints.
func (p *PublicKey) Origin() string { return p.verifier.Name() }

// String is the verifier's line: name, hash and key.
func (p *PublicKey) String() string { return p.line }

// Public is the half of the key that anybody may have.
func (k *Key) Public() *PublicKey { return k.public }

// ParsePublic reads a verifier's line.
func ParsePublic(line string) (*PublicKey, error) {
	line = strings.TrimSuffix(line, "\n")
	v, err := note.NewVerifier(line)
	if err != nil {
		return nil, fmt.Errorf("reading a public key: %w; it is one line such as %sabcdefgh/default+0a1b2c3d+AX...=", err,
			originPrefix)
	}
	return &PublicKey{line: line, verifier: v}, nil
}

// MakeKey reads the key of a tenant's log in dir, making one when there is none.
// Whoever comes first makes it, and all others see the whole of that one. A key
// whose public half is there was made before and is missing: none takes its
// place, for what another one signs is never again the log of the first.
func MakeKey(dir, tenant string) (*Key, error) {
	k, err := ReadKey(dir, tenant)
	if errors.Is(err, fs.ErrNotExist) {
		_, orphan := os.Lstat(filepath.Join(dir, PublicFile))
		if errors.Is(orphan, fs.ErrNotExist) {
			if err = newKey(dir, tenant); err != nil {
				return nil, fmt.Errorf("making the key of the audit log: %w", err)
			}
		}
		if k, err = ReadKey(dir, tenant); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; %s of it is there: bring the key back, or remove that file to begin with another key, "+
				"by which nothing that was signed before is believed", err, PublicFile)
		}
	}
	if err != nil {
		return nil, err
	}
	return k, k.writePublic(dir)
}

// ReadKey reads the key of a tenant's log; there may be none ([fs.ErrNotExist]).
func ReadKey(dir, tenant string) (*Key, error) {
	path := filepath.Join(dir, KeyFile)
	text, err := home.ReadPrivate(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the audit log: %w", err)
	}
	k, err := parseKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return nil, fmt.Errorf("reading the key of the audit log: %s: %w", path, err)
	}
	if origin := k.public.Origin(); !strings.HasPrefix(origin, originPrefix) || !strings.HasSuffix(origin, "/"+tenant) {
		return nil, fmt.Errorf("reading the key of the audit log: %s is the key of %s, not one of the tenant %s", path,
			origin, tenant)
	}
	return k, nil
}

// parseKey reads the line of a signer, of which the line of its verifier follows.
func parseKey(line string) (*Key, error) {
	signer, err := note.NewSigner(line)
	if err != nil {
		return nil, errors.New("it is no signing key")
	}
	parts := strings.Split(line, "+") // PRIVATE KEY name hash key
	raw, err := base64.StdEncoding.DecodeString(strings.Join(parts[4:], "+"))
	if err != nil {
		return nil, errors.New("it is no signing key")
	}
	private := ed25519.NewKeyFromSeed(raw[1:])
	verifier, err := note.NewEd25519VerifierKey(signer.Name(), private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	public, err := ParsePublic(verifier)
	return &Key{signer: signer, public: public}, err
}

// newKey makes the key of dir, unless somebody does so at the same moment.
func newKey(dir, tenant string) error {
	var random [5]byte
	rand.Read(random[:])
	name := originPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(random[:])) + "/" + tenant
	line, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return err
	}
	err = home.WriteNew(filepath.Join(dir, KeyFile), []byte(line+"\n"), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// writePublic puts the public half beside the key, if it is not there. One that
// is there is left alone: [CheckPublic] judges it.
func (k *Key) writePublic(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, PublicFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := home.WriteNew(filepath.Join(dir, PublicFile), []byte(k.public.line+"\n"), 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the public key of the audit log: %w", err)
	}
	return nil
}

// CheckPublic refuses a public half in dir that is not this key's.
func (k *Key) CheckPublic(dir string) error {
	path := filepath.Join(dir, PublicFile)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the public key of the audit log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxKey))
	}
	if err != nil {
		return fmt.Errorf("reading the public key of the audit log: %w", err)
	}
	if string(text) != k.public.line+"\n" {
		return fmt.Errorf("%s is not the public half of %s: one of the two was replaced", path, KeyFile)
	}
	return nil
}
