package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"strings"
)

// A token is "rlpt_", an id by which its record is found, "_" and a secret, in
// lower-case letters and digits: 50 bits and 256 bits.
const (
	tokenPrefix = "rlpt_"
	idLen       = 10
	secretLen   = 52
	tokenLen    = len(tokenPrefix) + idLen + 1 + secretLen
)

// letters are those that ids and secrets have.
const letters = "abcdefghijklmnopqrstuvwxyz234567"

// errNoToken says nothing of the text, which may be most of a token.
var errNoToken = errors.New("a token is rlpt_, ten letters and digits, _ and 52 letters and digits, as rlp token new " +
	"printed it")

// A parsedToken has the form of one.
type parsedToken struct{ id, text string }

// parseToken reads the one form in which tokens are written.
func parseToken(s string) (parsedToken, error) {
	if len(s) != tokenLen || !strings.HasPrefix(s, tokenPrefix) || s[len(tokenPrefix)+idLen] != '_' {
		return parsedToken{}, errNoToken
	}
	id, secret := s[len(tokenPrefix):len(tokenPrefix)+idLen], s[tokenLen-secretLen:]
	if !isWord(id) || !isWord(secret) {
		return parsedToken{}, errNoToken
	}
	return parsedToken{id, s}, nil
}

// ParseID reads the id of a token: by itself, or of a whole token, so that one
// that was found somewhere can be revoked.
func ParseID(s string) (string, error) {
	if t, err := parseToken(s); err == nil {
		return t.id, nil
	}
	if len(s) != idLen || !isWord(s) {
		return "", errors.New("the id of a token is ten letters and digits, as rlp token list prints it")
	}
	return s, nil
}

func isWord(s string) bool { return strings.Trim(s, letters) == "" }

// newToken makes one that nobody can guess.
func newToken() parsedToken {
	text := base32.NewEncoding(letters).WithPadding(base32.NoPadding)
	var id, secret [32]byte
	rand.Read(id[:])
	rand.Read(secret[:])
	t := parsedToken{id: text.EncodeToString(id[:])[:idLen]}
	t.text = tokenPrefix + t.id + "_" + text.EncodeToString(secret[:])
	return t
}

// A digest is what is kept of a token. The secret has 256 random bits, so that
// one round of a hash is as good as many.
type digest [sha256.Size]byte

func digestOf(token string) digest { return sha256.Sum256([]byte("rlp token v1\x00" + token)) }

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// parseDigest reads the 64 hex digits of a digest, in lower case.
func parseDigest(s string) (d digest, ok bool) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(d) || s != strings.ToLower(s) {
		return d, false
	}
	return digest(raw), true
}
