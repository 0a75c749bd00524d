package proxy

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// What a ClientHello is refused for.
var (
	errNoTLS      = errors.New("it does not begin with a ClientHello of TLS")
	errNoName     = errors.New("its ClientHello has no server name")
	errNames      = errors.New("its ClientHello names a server in more than one way")
	errHidden     = errors.New("its ClientHello hides a server's name, or is made to look so (Encrypted ClientHello)")
	errLongHello  = errors.New("its ClientHello is too long")
	errUnfinished = errors.New("not all of it is there")
)

// Bounds and numbers of TLS (RFC 8446).
const (
	recordHeader   = 5
	mostRecord     = 1 << 14
	mostHello      = 1 << 16 // in records, with their headers
	typeHandshake  = 22
	typeHello      = 1
	extName        = 0
	extESNI        = 0xffce // the drafts before extECH
	extECH         = 0xfe0d // RFC 9849
	extPSK         = 41
	nameIsHostname = 0
)

// A hello takes in the first bytes of a connection until its ClientHello is whole,
// over however many records. Nothing of the records is looked at twice.
type hello struct {
	raw   []byte // as it came
	taken int    // of raw: whole records
	said  []byte // what these hold
}

// take looks at raw, which has grown, and returns errUnfinished until the
// ClientHello is whole.
func (h *hello) take(raw []byte) error {
	for h.raw = raw; ; {
		rest := h.raw[h.taken:]
		if len(rest) > 0 && rest[0] != typeHandshake || len(rest) > 1 && rest[1] != 3 {
			return errNoTLS
		}
		if len(rest) < recordHeader {
			return h.unfinished()
		}
		size := int(binary.BigEndian.Uint16(rest[3:]))
		if size == 0 || size > mostRecord {
			return errNoTLS
		}
		if len(rest) < recordHeader+size {
			return h.unfinished()
		}
		h.said = append(h.said, rest[recordHeader:recordHeader+size]...)
		h.taken += recordHeader + size
		switch done, err := h.isWhole(); {
		case err != nil:
			return err
		case done:
			return nil
		}
	}
}

func (h *hello) unfinished() error {
	if len(h.raw) >= mostHello {
		return errLongHello
	}
	return errUnfinished
}

// isWhole reports whether said is one ClientHello, and nothing behind it.
func (h *hello) isWhole() (bool, error) {
	if h.said[0] != typeHello {
		return false, errNoTLS
	}
	if len(h.said) < 4 {
		return false, nil
	}
	size := 4 + int(h.said[1])<<16 + int(binary.BigEndian.Uint16(h.said[2:]))
	switch {
	case size > mostHello:
		return false, errLongHello
	case len(h.said) > size:
		return false, errNoTLS
	}
	return len(h.said) == size, nil
}

// serverName is the one that the whole ClientHello names, in lower case; "" when it
// names none. It is an error where what is named is not sure: by the extension of an
// encrypted ClientHello the server may be another one, and what clients send who have
// nothing to hide (GREASE) is made so that nobody but that server can tell.
func (h *hello) serverName() (string, error) {
	r := reader{b: h.said[4:]}
	r.skip(2 + 32)        // version and random
	r.skip(r.number(1))   // session
	suites := r.number(2) //
	r.skip(suites)        //
	r.skip(r.number(1))   // compression
	if len(r.b) == 0 && !r.isBroken && suites > 0 {
		return "", nil // no extensions
	}
	extensions := reader{b: r.take(r.number(2))}
	if r.isBroken || len(r.b) > 0 || suites == 0 || suites%2 != 0 {
		return "", errNoTLS
	}
	name := ""
	var seen []int
	for len(extensions.b) > 0 {
		kind := extensions.number(2)
		body := reader{b: extensions.take(extensions.number(2))}
		if extensions.isBroken || slices.Contains(seen, kind) || len(seen) > 0 && seen[len(seen)-1] == extPSK {
			return "", errNoTLS
		}
		seen = append(seen, kind)
		var err error
		switch kind {
		case extName:
			name, err = hostname(body)
		case extECH, extESNI:
			err = errHidden
		}
		if err != nil {
			return "", err
		}
	}
	return name, nil
}

// hostname reads the extension with the server's name, which has one.
func hostname(r reader) (string, error) {
	list := reader{b: r.take(r.number(2))}
	kind := list.number(1)
	name := string(list.take(list.number(2)))
	switch {
	case r.isBroken || list.isBroken || len(r.b) > 0 || name == "":
		return "", errNoTLS
	case kind != nameIsHostname || len(list.b) > 0:
		return "", errNames
	}
	return strings.ToLower(name), nil
}

// A reader reads numbers and bytes, and remembers when there were too few.
type reader struct {
	b        []byte
	isBroken bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.isBroken, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) number(size int) int {
	n := 0
	for _, b := range r.take(size) {
		n = n<<8 | int(b)
	}
	return n
}
