package hostcalls

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/caps"
)

type kbReq struct {
	domain, key string
	value       string
	revision    uint64
}

func (r kbReq) target() string { return r.domain + "/" + r.key }

var errKey = &Fail{Errno: Inval, Hint: "a key is 1 to 1024 bytes of UTF-8 without control characters"}

func kbKey(in []string) (kbReq, error) {
	r := kbReq{domain: strings.Clone(in[0]), key: strings.Clone(in[1])}
	if r.key == "" {
		return r, errKey
	}
	return r, checkText(r.domain, r.key)
}

func kbPrefix(in []string) (kbReq, error) {
	r := kbReq{domain: strings.Clone(in[0]), key: strings.Clone(in[1])}
	return r, checkText(r.domain, r.key)
}

func checkText(words ...string) error {
	for _, w := range words {
		if len(w) > MaxKey || !utf8.ValidString(w) || strings.ContainsFunc(w, func(r rune) bool {
			return r < ' ' ||
				r == 0x7f
		}) {
			return errKey
		}
	}
	return nil
}

func kbValue(in []string) (kbReq, error) {
	r, err := kbKey(in)
	r.value = in[2]
	if err == nil && len(r.value) > MaxValue {
		err = &Fail{Errno: TooBig, Hint: "a value is at most 1 MiB"}
	}
	return r, err
}

func kbRevision(in []string) (kbReq, error) {
	r, err := kbValue(in)
	if err != nil {
		return r, err
	}
	r.revision, err = strconv.ParseUint(in[3], 10, 64)
	if err != nil {
		return r, &Fail{Errno: Inval, Hint: "the revision is decimal text, 0 for a key that is not there"}
	}
	return r, nil
}

func kbReads(r kbReq) (caps.Request, string) {
	return caps.Request{Family: caps.KBRead, Name: r.domain}, r.target()
}

func kbWrites(r kbReq) (caps.Request, string) {
	return caps.Request{Family: caps.KBWrite, Name: r.domain}, r.target()
}

func kbPayload(r kbReq) [][]byte {
	return [][]byte{[]byte(r.domain), []byte(r.key), []byte(r.value)}
}

// kbError gives a missing key its own number; what the store says otherwise is
// either a Fail already or the host's own trouble.
func kbError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &Fail{Errno: Noent, Hint: "no such key"}
	}
	return err
}
