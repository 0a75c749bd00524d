package access

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/internal/base/home"
)

// maxTokens bounds how many records there are.
const maxTokens = 4096

// rereadAfter is how long what was read of records counts, if their folder does
// not say that it changed.
const rereadAfter = time.Second

// touchAfter is how often the last use of a token is written down.
const touchAfter = time.Minute

// A Store is the records of tokens, a private file each in one private folder.
// Several processes may use it.
type Store struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*entry // by id
	folder  fs.FileInfo
	read    time.Time
	err     error // why nothing could be read
}

// An entry is one record as it was read last.
type entry struct {
	token *Token
	err   error
	info  fs.FileInfo
	used  time.Time
}

// A Listed is a record, or what is wrong with its file.
type Listed struct {
	ID    string
	Token *Token // nil if Err is not
	Used  time.Time
	Err   error
}

// OpenStore is the store in a folder, which is made when the first token is.
func OpenStore(dir string, now func() time.Time) *Store { return &Store{dir: dir, now: now} }

// New keeps t under an id of its own and returns the token, which is nowhere
// else; it is "" for a record that a certificate proves. Name, tenant, rights
// and what t is proved by are checked; no other good record has its name.
func (s *Store) New(t Token) (*Token, string, error) {
	if err := s.make(); err != nil {
		return nil, "", fmt.Errorf("making a token: %w", err)
	}
	fresh := newToken()
	t.ID, t.Created, t.Revoked = fresh.id, s.now().UTC().Truncate(time.Second), time.Time{}
	text := ""
	if t.CertName == "" && t.CertHash == "" {
		t.secret, t.stated, text = digestOf(fresh.text), true, fresh.text
	}
	if err := t.check(); err != nil {
		return nil, "", fmt.Errorf("making a token: %w", err)
	}
	if t.State(s.now()) != "good" {
		return nil, "", errors.New("making a token: it would be expired at once")
	}
	all, err := s.List()
	if err != nil {
		return nil, "", fmt.Errorf("making a token: %w", err)
	}
	if len(all) >= maxTokens {
		return nil, "", fmt.Errorf("making a token: there are %d; remove files of old ones from %s", len(all), s.dir)
	}
	for _, l := range all {
		if l.Token != nil && l.Token.State(s.now()) == "good" && l.Token.overlaps(&t) {
			return nil, "", fmt.Errorf("making a token: %s is %s already; revoke that one first, or take another name", t.Name,
				l.ID)
		}
	}
	if err := home.WritePrivate(s.path(t.ID), t.encode()); err != nil {
		return nil, "", fmt.Errorf("making a token: %w", err)
	}
	return &t, text, nil
}

// overlaps reports whether two records would be one caller, or one certificate
// two.
func (t *Token) overlaps(o *Token) bool {
	return t.Name == o.Name && t.Tenant == o.Tenant || t.CertName != "" && t.CertName == o.CertName || t.CertHash != "" &&
		t.CertHash == o.CertHash
}

// Revoke ends a token, and whatever is open by it. One that was revoked before
// stays as it was; one that there is not is [fs.ErrNotExist].
func (s *Store) Revoke(id string) (*Token, error) {
	if len(id) != idLen || !isWord(id) {
		return nil, errors.New("revoking a token: " + id + " is no id of one")
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("revoking the token %s: %w", id, err)
	}
	t, _, err := s.load(id)
	if err != nil {
		return nil, fmt.Errorf("revoking the token %s: %w", id, err)
	}
	if !t.Revoked.IsZero() {
		return t, nil
	}
	t.Revoked = s.now().UTC().Truncate(time.Second)
	if err := home.WritePrivate(s.path(id), t.encode()); err != nil {
		return nil, fmt.Errorf("revoking the token %s: %w", id, err)
	}
	return t, nil
}

// List reads every record, by name.
func (s *Store) List() ([]Listed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(true)
	if s.err != nil {
		return nil, s.err
	}
	list := make([]Listed, 0, len(s.entries))
	for id, e := range s.entries {
		l := Listed{ID: id, Token: e.token, Err: e.err}
		if info, err := os.Lstat(s.used(id)); err == nil {
			l.Used = info.ModTime()
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.order(), b.order()) })
	return list, nil
}

func (l *Listed) order() string {
	if l.Token == nil {
		return "~" + l.ID
	}
	return l.Token.Name + "\x00" + l.ID
}

// Good is how many tokens somebody could come in by now, and where certificates
// of clients are asked for (certs), how many of those as well.
func (s *Store) Good(certs bool) (int, error) {
	list, err := s.List()
	n := 0
	for _, l := range list {
		if t := l.Token; t != nil && t.State(s.now()) == "good" && (certs || t.CertName == "" && t.CertHash == "") {
			n++
		}
	}
	return n, err
}

// byID is the record of an id as the disk has it; nil if there is none, or none
// that can be believed. The error is that of the whole store.
func (s *Store) byID(id string) (*Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(false)
	if e := s.entries[id]; e != nil {
		return e.token, nil
	}
	return nil, s.err
}

// byCert is the record that a certificate proves: one of its hash before one of
// its name, whatever became of it, so that a certificate can be revoked alone;
// then a good one before another.
func (s *Store) byCert(cert *x509.Certificate) (*Token, error) {
	hash := hashOf(cert)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(false)
	if s.err != nil {
		return nil, s.err
	}
	var found *Token
	for _, e := range s.entries {
		t := e.token
		if t == nil || t.CertHash != hash && (t.CertName == "" || t.CertName != cert.Subject.CommonName) {
			continue
		}
		if found == nil || s.better(t, found) {
			found = t
		}
	}
	return found, nil
}

// better orders two records of one certificate, each pair in one way alone.
func (s *Store) better(a, b *Token) bool {
	if (a.CertHash != "") != (b.CertHash != "") {
		return a.CertHash != ""
	}
	if good := a.State(s.now()) == "good"; good != (b.State(s.now()) == "good") {
		return good
	}
	return a.ID < b.ID
}

// touch notes that a token was used, now and then.
func (s *Store) touch(id string) {
	now := s.now()
	s.mu.Lock()
	e := s.entries[id]
	due := e != nil && now.Sub(e.used) >= touchAfter
	if due {
		e.used = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	// What was used when is for the operator to look at; nothing depends on it.
	path := s.used(id)
	if os.Chtimes(path, now, now) != nil {
		if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			_ = os.Chtimes(path, now, now)
		}
	}
}

// refresh brings what is in memory up to the disk. A file that did not change
// is not read again; one that changed and cannot be believed is no token.
func (s *Store) refresh(always bool) {
	folder, err := os.Lstat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.entries, s.folder, s.err = nil, nil, nil
		return
	}
	if err == nil {
		err = home.PrivateDir(s.dir, folder)
	}
	if err != nil {
		s.entries, s.folder, s.err = nil, nil, err
		return
	}
	now := s.now()
	since := now.Sub(s.read)
	if !always && s.err == nil && s.folder != nil && since >= 0 && since < rereadAfter &&
		os.SameFile(folder, s.folder) && folder.ModTime().Equal(s.folder.ModTime()) {
		return
	}
	names, err := os.ReadDir(s.dir)
	if err != nil {
		s.entries, s.folder, s.err = nil, nil, err
		return
	}
	fresh := make(map[string]*entry)
	for _, n := range names {
		id, ok := strings.CutSuffix(n.Name(), ".toml")
		if !ok || len(id) != idLen || !isWord(id) {
			continue
		}
		fresh[id] = s.again(id)
	}
	s.entries, s.folder, s.read, s.err = fresh, folder, now, nil
}

// again is the entry of a file, read if it is not what it was.
func (s *Store) again(id string) *entry {
	old := s.entries[id]
	info, err := os.Lstat(s.path(id))
	if old != nil && err == nil && unchanged(info, old.info) {
		return old
	}
	e := &entry{err: err}
	if err == nil {
		e.token, e.info, e.err = s.load(id)
	}
	if old != nil {
		e.used = old.used
	}
	return e
}

// load reads a record and nothing else.
func (s *Store) load(id string) (*Token, fs.FileInfo, error) {
	path := s.path(id)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	data, err := home.ReadPrivate(path, maxRecord)
	if err != nil {
		return nil, nil, err
	}
	t, err := decode(id, path, data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return t, info, nil
}

// check refuses a folder that is not the operator's alone.
func (s *Store) check() error {
	info, err := os.Lstat(s.dir)
	if err != nil {
		return err
	}
	return home.PrivateDir(s.dir, info)
}

func (s *Store) make() error {
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.check()
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id+".toml") }
func (s *Store) used(id string) string { return filepath.Join(s.dir, id+".used") }

// unchanged reports whether two looks at a file saw the same one, with the same
// words and the same rights.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// hashOf is how a certificate is written down.
func hashOf(cert *x509.Certificate) string { return digest(sum256(cert.Raw)).String() }

func sum256(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
