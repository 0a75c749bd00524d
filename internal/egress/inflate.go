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
	if how := resp.Header["Content-Encoding"]; resp.Body == http.NoBody || len(how) != 1 || !strings.EqualFold(how[0], "gzip") {
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &inflated{from: resp.Body, pool: &c.inflaters}
}

// An inflated body is decompressed as it is read, by one goroutine.
type inflated struct {
	from io.ReadCloser
	pool *sync.Pool // of *gzip.Reader
	z    *gzip.Reader
	err  error // of all further reads
}

var errClosed = errors.New("reading a body: it is closed")

func (b *inflated) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.z == nil {
		b.z, _ = b.pool.Get().(*gzip.Reader)
		if b.z == nil {
			b.z = new(gzip.Reader)
		}
		if b.err = b.z.Reset(b.from); b.err != nil {
			return 0, b.err
		}
	}
	n, err := b.z.Read(p)
	b.err = err
	return n, err
}

func (b *inflated) Close() error {
	if b.z != nil {
		b.pool.Put(b.z)
		b.z = nil
	}
	b.err = errClosed
	return b.from.Close()
}
