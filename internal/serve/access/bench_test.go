package access

import (
	"net"
	"net/http"
	"testing"
)

// What it costs to know who asks: by a token, by a session's cookie, and by the
// connection, which is asked of the kernel once.
func BenchmarkAuthenticate(b *testing.B) {
	k := kitOf(b, nil)
	_, text := k.token(b, func(o *Token) { o.Grant = "{}" })
	cookie := logIn(b, k.Wrap(http.NotFoundHandler()), text, "192.0.2.1")
	for name, r := range map[string]*http.Request{
		"token":   bearer(b, text),
		"session": browser(b, "GET", "/runs", "192.0.2.1", nil, cookie),
		"peer":    asUser(request(b), 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Authenticate(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the kernel takes to say whose connection it is.
func BenchmarkPeer(b *testing.B) {
	var lc net.ListenConfig
	l, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var d net.Dialer
	client, err := d.DialContext(b.Context(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		p := &peer{conn: c}
		if _, state := p.user(); state == peerUnknown {
			b.Fatal("unknown")
		}
	}
}
