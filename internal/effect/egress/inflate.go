package egress

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// inflate makes resp what it was before gzip.
func (c *Client) inflate(resp *http.Response) {
	if how := resp.Header["Content-Encoding"]; resp.Body == http.NoBody || len(how) != 1 || !strings.EqualFold(how[0],
		"gzip") {
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &inflated{from: resp.Body, pool: &c.inflaters}
}

// An inflated body is decompressed as it is read, by one goroutine.
type inflated struct {
	from   io.ReadCloser
	pool   *sync.Pool // of *gzip.Reader
	z      *gzip.Reader
	closed bool
}

var errClosed = errors.New("reading a body: it is closed")

func (b *inflated) Read(p []byte) (int, error) {
	if b.closed {
		return 0, errClosed
	}
	if b.z == nil {
		b.z, _ = b.pool.Get().(*gzip.Reader)
		if b.z == nil {
			b.z = new(gzip.Reader)
		}
		_ = b.z.Reset(b.from) // each read gives its error
	}
	return b.z.Read(p)
}

func (b *inflated) Close() error {
	if b.z != nil {
		b.pool.Put(b.z)
		b.z = nil
	}
	b.closed = true
	return b.from.Close()
}
