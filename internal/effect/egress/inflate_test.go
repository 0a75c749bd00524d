package egress

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// zipped is a server that says that everything is gzip.
func zipped(t *testing.T, body []byte) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Encoding", "GZIP")
		if r.Method != http.MethodHead && r.URL.Path != "/empty" {
			_, _ = rw.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What comes as gzip is decompressed when the request says that it takes gzip,
// over one connection and with one reader; otherwise it is passed on.
func TestInflate(t *testing.T) {
	text := strings.Repeat("again and ", 1000)
	body := compressed(t, text)
	dial, dialed := through(zipped(t, body))
	client := New(Config{Resolve: fixed(somewhere), Dial: dial})
	defer client.Close()
	for _, c := range []struct{ method, path, accept, want, encoding string }{
		{"GET", "/", "gzip", text, ""},
		{"GET", "/", "", string(body), "GZIP"},
		{"GET", "/", "gzip, br", string(body), "GZIP"},
		{"GET", "/empty", "gzip", "", "GZIP"},
		{"HEAD", "/", "gzip", "", "GZIP"},
		{"GET", "/", "gzip", text, ""},
	} {
		req := request(t, "http://api.example.com"+c.path)
		req.Method = c.method
		if c.accept != "" {
			req.Header.Set("Accept-Encoding", c.accept)
		}
		resp, err := client.Send(req, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != c.want || resp.Header.Get("Content-Encoding") != c.encoding {
			t.Errorf("%+v: %d bytes, %v, %v", c, len(got), err, resp.Header)
		}
		if c.encoding == "" && (resp.ContentLength != -1 || resp.Header.Get("Content-Length") != "") {
			t.Errorf("%+v: says that it has %d bytes", c, resp.ContentLength)
		}
		_ = resp.Body.Close()
		_ = resp.Body.Close() // twice is no harm
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil || c.encoding == "" && err != errClosed {
			t.Errorf("%+v: read after it was closed: %d, %v", c, n, err)
		}
		if a, b := client.inflaters.Get(), client.inflaters.Get(); a != nil && a == b {
			t.Errorf("%+v: one reader would serve two answers", c)
		} else if a != nil {
			client.inflaters.Put(a)
		}
	}
	if len(*dialed) != 1 {
		t.Errorf("dialled %v", *dialed)
	}
}

// What says that it is gzip and is not, or breaks off, is an error, and the
// reader that met it serves the next answer.
func TestInflateBroken(t *testing.T) {
	body := compressed(t, strings.Repeat("again and ", 1000))
	client := New(Config{Resolve: fixed(somewhere)})
	defer client.Close()
	for _, c := range []struct {
		body []byte
		want error
	}{
		{[]byte("no gzip, long enough for its header"), gzip.ErrHeader},
		{body[:5], io.ErrUnexpectedEOF},
		{body[:len(body)-2], io.ErrUnexpectedEOF},
		{append(bytes.Clone(body), "junk after its end"...), gzip.ErrHeader},
		{body, nil},
	} {
		client.cfg.Dial, _ = through(zipped(t, c.body))
		req := request(t, "http://api.example.com/")
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := client.Send(req, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		_, again := resp.Body.Read(make([]byte, 1))
		if !errors.Is(err, c.want) || c.want != nil && !errors.Is(again, c.want) {
			t.Errorf("%.20q: %v, then %v", c.body, err, again)
		}
		_ = resp.Body.Close()
		client.transport.CloseIdleConnections()
	}
}

// An answer that says of itself two encodings, or another one, is passed on.
func TestInflateOneEncoding(t *testing.T) {
	for _, encodings := range [][]string{{"gzip", "br"}, {"br"}} {
		passedOn(t, encodings)
	}
}

// A body that cannot be closed says so.
func TestInflateClose(t *testing.T) {
	if err := (&inflated{from: failing{http.NoBody}}).Close(); err != io.ErrNoProgress {
		t.Errorf("closed: %v", err)
	}
}

type failing struct{ io.Reader }

func (failing) Close() error { return io.ErrNoProgress }

func passedOn(t *testing.T, encodings []string) {
	body := compressed(t, "text")
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Content-Encoding"] = encodings
		_, _ = rw.Write(body)
	}))
	t.Cleanup(s.Close)
	dial, _ := through(s)
	client := New(Config{Resolve: fixed(somewhere), Dial: dial})
	defer client.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://api.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Send(req, false)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) ||
		len(resp.Header["Content-Encoding"]) != len(encodings) {
		t.Errorf("%q, %v, %v", got, err, resp.Header)
	}
}
