package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/serve/service"
)

// maxRecord bounds the file of a record, in bytes.
const maxRecord = 128 << 10

// A Token is what is kept of one: who it stands for, and what it may. The token
// itself is nowhere. Exactly one of what it is proved by is set: the digest of a
// secret, the name in a client certificate, the SHA-256 of one.
type Token struct {
	ID     string
	Name   string // its caller is "token:NAME"; of a certificate "cert:NAME"
	Tenant string
	May    service.Rights
	// Profiles and Grant narrow what its holder asks for: names of profiles, and
	// the text of a grant or of an override.
	Profiles []string
	Grant    string
	Created  time.Time
	Expires  time.Time // zero: never
	Revoked  time.Time // zero: it was not

	CertName string // the common name of a client certificate
	CertHash string // or its SHA-256, in hex

	secret digest
	stated bool // secret is set
}

// Rights are the words by which rights are written, in their order.
func Rights() []string { return []string{"run", "read", "operate"} }

// ParseRights reads words of [Rights].
func ParseRights(words []string) (service.Rights, error) {
	var may service.Rights
	for _, w := range words {
		switch w {
		case "run":
			may |= service.Launch
		case "read":
			may |= service.Read
		case "operate":
			may |= service.Operate
		default:
			return 0, fmt.Errorf("%q is no right; they are %s", w, strings.Join(Rights(), ", "))
		}
	}
	if may == 0 {
		return 0, fmt.Errorf("no right is named; they are %s", strings.Join(Rights(), ", "))
	}
	return may, nil
}

// RightsOf are the words of rights.
func RightsOf(may service.Rights) []string {
	words := []string{}
	for i, w := range Rights() {
		if may&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return words
}

// State says whether the token is good at a time: "good", "expired" or "revoked".
func (t *Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return "expired"
	}
	return "good"
}

// Caller is how logs call its holder.
func (t *Token) Caller() string {
	if t.CertName != "" || t.CertHash != "" {
		return "cert:" + t.Name
	}
	return "token:" + t.Name
}

// callerID tells the caller from all others, of all times: ids are random and of
// one record each, names are free again when a token is not good any more.
func (t *Token) callerID() string {
	if t.CertName != "" || t.CertHash != "" {
		return "cert:" + t.ID
	}
	return "token:" + t.ID
}

// isName reports whether name is one for a token: it stands in logs.
func isName(name string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= 64 && strings.Contains(alphanumeric, name[:1]) &&
		strings.Trim(name, alphanumeric+"_.-") == ""
}

// check refuses what no record may say.
func (t *Token) check() error {
	if !isName(t.Name) {
		return errors.New("name must be 1 to 64 of a-z, 0-9, _, . and -, the first a letter or digit")
	}
	if _, err := ident.ParseTenant(t.Tenant); err != nil {
		return err
	}
	if t.Name == "operator" {
		return errors.New("name must not be operator, which is what logs call the holder of serve.token_secret")
	}
	proofs := 0
	for _, is := range []bool{t.stated, t.CertName != "", t.CertHash != ""} {
		if is {
			proofs++
		}
	}
	switch {
	case proofs != 1:
		return errors.New("exactly one of secret, cert_name and cert_sha256 must be there")
	case len(t.CertName) > 256 || !utf8.ValidString(t.CertName) || strings.ContainsFunc(t.CertName, func(r rune) bool {
		return r < ' ' || r == 0x7f
	}):
		return errors.New("cert_name must be the common name of a certificate, at most 256 bytes of text")
	case len(t.Profiles) > 64:
		return errors.New("at most 64 profiles are named")
	case len(t.Grant) > 64<<10:
		return errors.New("the grant must be at most 65536 bytes")
	}
	if _, ok := parseDigest(t.CertHash); t.CertHash != "" && !ok {
		return errors.New("cert_sha256 must be 64 hex digits in lower case")
	}
	return nil
}

// recordKeys are those that the file of a record has.
func recordKeys() []string {
	return []string{
		"version", "id", "name", "tenant", "may", "secret", "cert_name", "cert_sha256", "profiles", "grant",
		"created", "expires", "revoked",
	}
}

// encode is the file of a record.
func (t *Token) encode() []byte {
	var b strings.Builder
	b.WriteString("# A token of rlp serve; its secret is kept as a digest. See rlp token --help.\nversion = 1\n")
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", key, quote(value))
		}
	}
	list := func(key string, values []string) {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = quote(v)
		}
		fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(quoted, ", "))
	}
	text("id", t.ID)
	text("name", t.Name)
	text("tenant", t.Tenant)
	list("may", RightsOf(t.May))
	if t.stated {
		text("secret", t.secret.String())
	}
	text("cert_name", t.CertName)
	text("cert_sha256", t.CertHash)
	if len(t.Profiles) > 0 {
		list("profiles", t.Profiles)
	}
	text("grant", t.Grant)
	for _, at := range []struct {
		key  string
		time time.Time
	}{{"created", t.Created}, {"expires", t.Expires}, {"revoked", t.Revoked}} {
		if !at.time.IsZero() {
			fmt.Fprintf(&b, "%s = %s\n", at.key, at.time.UTC().Format(time.RFC3339))
		}
	}
	return []byte(b.String())
}

// quote is s as a basic string of TOML, on one line.
func quote(s string) string {
	raw, _ := json.Marshal(s) // a string always has a form
	return strings.ReplaceAll(string(raw), "\x7f", `\u007f`)
}

// decode reads the file of a record whose name says id.
func decode(id, file string, data []byte) (*Token, error) {
	root, err := tomlfile.ParseMax(file, data, maxRecord)
	if err != nil {
		return nil, err
	}
	var w tomlfile.Walk
	w.Known(root, recordKeys()...)
	w.Need(root, "version", "id", "name", "tenant", "may", "created")
	if v, ok := w.Int(root, "version"); ok && v != 1 {
		return nil, errors.New("version is " + strconv.FormatInt(v, 10) + ", and this rlp knows 1")
	}
	t := &Token{}
	t.ID, _ = w.String(root, "id")
	t.Name, _ = w.String(root, "name")
	t.Tenant, _ = w.String(root, "tenant")
	t.CertName, _ = w.String(root, "cert_name")
	t.CertHash, _ = w.String(root, "cert_sha256")
	t.Profiles, _ = w.Strings(root, "profiles")
	t.Grant, _ = w.String(root, "grant")
	words, _ := w.Strings(root, "may")
	secret, stated := w.String(root, "secret")
	moment := func(key string, into *time.Time) {
		v, ok := w.Get(root, key, tomlfile.DateTime)
		if ok && v.Time.IsZero() {
			w.Errorf(v.Pos, "", "%s must be a time with its zone, such as 2026-01-02T03:04:05Z", key)
		}
		if ok {
			*into = v.Time
		}
	}
	moment("created", &t.Created)
	moment("expires", &t.Expires)
	moment("revoked", &t.Revoked)
	if err := w.Err(); err != nil {
		return nil, err
	}
	if t.May, err = ParseRights(words); err != nil {
		return nil, fmt.Errorf("may: %w", err)
	}
	if t.secret, t.stated = parseDigest(secret); stated && !t.stated {
		return nil, errors.New("secret must be 64 hex digits in lower case")
	}
	if t.ID != id || len(id) != idLen || !isWord(id) {
		return nil, fmt.Errorf("its id is not that of its file, %s", id)
	}
	// An empty list is a list: it must not be taken for none.
	if _, has := root.Get("grant"); has && t.Grant == "" || slices.Contains(t.Profiles, "") {
		return nil, errors.New("an empty grant or profile is none: leave it out")
	}
	return t, t.check()
}
