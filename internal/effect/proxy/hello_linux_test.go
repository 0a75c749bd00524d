package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

var errStop = errors.New("stop")

// recorded is the other end of a handshake that comes to nothing: what the client
// says is kept, and it hears nothing.
type recorded struct{ said bytes.Buffer }

func (r *recorded) Write(b []byte) (int, error)      { return r.said.Write(b) }
func (*recorded) Read([]byte) (int, error)           { return 0, io.EOF }
func (*recorded) Close() error                       { return nil }
func (*recorded) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (*recorded) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (*recorded) SetDeadline(time.Time) error        { return nil }
func (*recorded) SetReadDeadline(time.Time) error    { return nil }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }

// greeting is what a client of Go says first.
func greeting(cfg *tls.Config) []byte {
	cfg.InsecureSkipVerify = true
	var r recorded
	_ = tls.Client(&r, cfg).Handshake()
	return r.said.Bytes()
}

// plainly is the server's name as crypto/tls reads it.
func plainly(b []byte) (name string, isHello bool) {
	r := &heard{Reader: bytes.NewReader(b)}
	seen := func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, isHello = h.ServerName, true
		return nil, errStop
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, GetConfigForClient: seen}
	_ = tls.Server(r, cfg).Handshake()
	return name, isHello
}

type heard struct {
	recorded
	io.Reader
}

func (h *heard) Read(b []byte) (int, error)  { return h.Reader.Read(b) }
func (h *heard) Write(b []byte) (int, error) { return len(b), nil }

// split is the handshake message of records as records of n bytes each.
func split(raw []byte, n int) []byte {
	var said, out []byte
	for len(raw) > 0 {
		size := int(binary.BigEndian.Uint16(raw[3:]))
		said, raw = append(said, raw[5:5+size]...), raw[5+size:]
	}
	for len(said) > 0 {
		part := said[:min(n, len(said))]
		said = said[len(part):]
		out = append(append(out, 22, 3, 1, 0, byte(len(part))), part...)
	}
	return out
}

// read is the name that a hello of ours finds, fed in pieces of n bytes.
func read(raw []byte, n int) (string, error) {
	var h hello
	for end := 0; end < len(raw); {
		end = min(end+n, len(raw))
		err := h.take(raw[:end])
		if errors.Is(err, errUnfinished) {
			continue
		}
		if err != nil {
			return "", err
		}
		return h.serverName()
	}
	return "", errUnfinished
}

// extended is a ClientHello with one more extension.
func extended(raw []byte, kind uint16, body []byte) []byte {
	h := hello{}
	if h.take(raw) != nil {
		panic("no ClientHello")
	}
	r := reader{b: h.said[4:]}
	r.skip(34)
	r.skip(r.number(1))
	r.skip(r.number(2))
	r.skip(r.number(1))
	at := len(h.said) - len(r.b)
	more := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), uint16(len(body)))
	said := append(append(bytes.Clone(h.said[:at+2]), append(more, body...)...), h.said[at+2:]...)
	binary.BigEndian.PutUint16(said[at:], uint16(len(said)-at-2))
	binary.BigEndian.PutUint16(said[2:], uint16(len(said)-4))
	return append(binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(len(said))), said...)
}

// The server's name is found over any number of pieces and records, and nothing
// else is taken for one.
func TestServerName(t *testing.T) {
	plain := greeting(&tls.Config{ServerName: "API.example.com"})
	none := greeting(&tls.Config{ServerName: "192.0.2.1"})
	old := greeting(&tls.Config{ServerName: "api.example.com", MaxVersion: tls.VersionTLS12})
	grease := append([]byte{0, 0, 1, 0, 1, 9, 0, 32}, make([]byte, 32)...)
	grease = append(append(grease, 0, 144), make([]byte, 144)...)
	for name, c := range map[string]struct {
		raw  []byte
		want string
		err  error
	}{
		"plain":                  {plain, "api.example.com", nil},
		"TLS 1.2":                {old, "api.example.com", nil},
		"100-byte records":       {split(plain, 100), "api.example.com", nil},
		"1-byte records":         {split(plain, 1), "api.example.com", nil},
		"an address has none":    {none, "", nil},
		"GREASE":                 {extended(plain, extECH, grease), "", errHidden},
		"inner ECH":              {extended(plain, extECH, []byte{1}), "", errHidden},
		"cut off ECH":            {extended(plain, extECH, grease[:20]), "", errHidden},
		"ESNI":                   {extended(plain, extESNI, []byte{1}), "", errHidden},
		"twice":                  {extended(plain, extName, []byte{0, 4, 0, 0, 1, 'x'}), "", errNoTLS},
		"two names":              {extended(none, extName, []byte{0, 8, 0, 0, 1, 'x', 0, 0, 1, 'y'}), "", errNames},
		"another kind of name":   {extended(none, extName, []byte{0, 4, 1, 0, 1, 'x'}), "", errNames},
		"an empty name":          {extended(none, extName, []byte{0, 3, 0, 0, 0}), "", errNoTLS},
		"an empty list":          {extended(none, extName, []byte{0, 0}), "", errNoTLS},
		"HTTP":                   {[]byte("GET / HTTP/1.1\r\n\r\n"), "", errNoTLS},
		"SSH":                    {[]byte("SSH-2.0-x\r\n"), "", errNoTLS},
		"SSLv2":                  {[]byte{0x80, 0x2e, 1, 3, 1}, "", errNoTLS},
		"data":                   {[]byte{23, 3, 3, 0, 1, 0}, "", errNoTLS},
		"an alert within":        {append(split(plain, 100)[:105], 21, 3, 3, 0, 2, 1, 0), "", errNoTLS},
		"a ServerHello":          {[]byte{22, 3, 3, 0, 4, 2, 0, 0, 0}, "", errNoTLS},
		"an empty record":        {[]byte{22, 3, 1, 0, 0}, "", errNoTLS},
		"a record too long":      {[]byte{22, 3, 1, 0x40, 1}, "", errNoTLS},
		"a message too long":     {[]byte{22, 3, 1, 0, 4, 1, 1, 0, 0}, "", errLongHello},
		"records without an end": {split(whole(append([]byte{1, 0, 0xff, 0}, make([]byte, 20000)...)), 1), "", errLongHello},
		"cut off":                {plain[:len(plain)-1], "", errUnfinished},
		"nothing":                {nil, "", errUnfinished},
	} {
		for _, n := range []int{1, 7, 1 << 20} {
			got, err := read(c.raw, n)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%s, in pieces of %d: %q, %v; want %q, %v", name, n, got, err, c.want, c.err)
			}
		}
	}
}

// whole is a message in as few records as it takes.
func whole(said []byte) (raw []byte) {
	for len(said) > 0 {
		part := said[:min(mostRecord, len(said))]
		said = said[len(part):]
		raw = append(append(raw, 22, 3, 1, byte(len(part)>>8), byte(len(part))), part...)
	}
	return raw
}

// What is taken for a server's name is what a server takes for it.
func FuzzServerName(f *testing.F) {
	plain := greeting(&tls.Config{ServerName: "api.example.com"})
	for _, seed := range [][]byte{
		plain, split(plain, 50), greeting(&tls.Config{ServerName: "192.0.2.1"}),
		greeting(&tls.Config{ServerName: "a.b", MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}),
		extended(plain, extECH, []byte{1}), []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours, err := read(raw, 1<<20)
		if again, too := read(raw, 3); again != ours || (too == nil) != (err == nil) {
			t.Fatalf("in pieces it is %q, %v; at once %q, %v", again, too, ours, err)
		}
		if err != nil {
			return
		}
		if theirs, is := plainly(raw); is && !strings.EqualFold(theirs, ours) {
			t.Fatalf("ours %q, theirs %q", ours, theirs)
		}
	})
}
