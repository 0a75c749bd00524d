package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A counted connection counts how often it was closed.
type counted struct {
	net.Conn
	closed *atomic.Int32
}

func (c counted) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// A request whose TLS names a version goes over no lower one, never over plain
// HTTP, and a client that is closed keeps no connection of either kind.
func TestPools(t *testing.T) {
	for _, c := range []struct {
		version, most uint16 // of the request, of the server
		want          error
	}{
		{0, tls.VersionTLS12, nil},
		{tls.VersionTLS12, tls.VersionTLS12, nil},
		{tls.VersionTLS13, tls.VersionTLS13, nil},
		{tls.VersionTLS13, tls.VersionTLS12, errBroken},
		{tls.VersionTLS13 + 1, tls.VersionTLS13, errTLS},
	} {
		var served atomic.Int32
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
		s.TLS = &tls.Config{MaxVersion: c.most}
		s.StartTLS()
		dial, asked := through(s)
		var closed atomic.Int32
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		client := New(Config{Resolve: fixed(somewhere), Roots: roots, Dial: func(ctx context.Context, network,
			address string,
		) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return counted{conn, &closed}, err
		}})
		req := request(t, "https://example.com/")
		req.TLS = &tls.ConnectionState{Version: c.version}
		resp, err := client.Send(req, false)
		if (err == nil) != (c.want == nil) || c.want == errTLS && err != errTLS || (served.Load() == 1) != (err == nil) {
			t.Errorf("%+v: %v, served %d", c, err, served.Load())
		}
		if err == nil {
			if !slices.Equal(*asked, []string{"93.184.215.14:443"}) || closed.Load() != 0 {
				t.Errorf("%+v: dialled %v, closed %d", c, *asked, closed.Load())
			}
			_ = resp.Body.Close()
			client.Close()
			if closed.Load() == 0 {
				t.Errorf("%+v: the connection is kept", c)
			}
		}
		s.Close()
	}
	req := request(t, "http://example.com/")
	req.TLS = &tls.ConnectionState{Version: tls.VersionTLS13}
	client := New(Config{Resolve: fixed(somewhere)})
	defer client.Close()
	if _, err := client.Send(req, false); err != errTLS {
		t.Errorf("over plain HTTP: %v", err)
	}
}

// An answer that switches protocols is none, and its connection is closed.
func TestNoSwitchOfProtocols(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = http.ReadRequest(bufio.NewReader(theirs))
		_, _ = io.WriteString(theirs, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
	}()
	var closed atomic.Int32
	client := New(Config{Resolve: fixed(somewhere), Dial: func(context.Context, string, string) (net.Conn, error) {
		return counted{ours, &closed}, nil
	}})
	if _, err := client.Send(request(t, "http://example.com/"), false); err != errProtocol || closed.Load() == 0 {
		t.Errorf("%v, closed %d times", err, closed.Load())
	}
}

// Each address is tried for its time, all but the last for a short one; a try
// ends before the next begins, and the first error is the one that is told.
func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), []time.Duration{}
		var last context.Context
		quick := false
		client := New(Config{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if last != nil && last.Err() == nil {
				t.Error("the try before is still open")
			}
			if last = ctx; !quick {
				<-ctx.Done()
			}
			tries = append(tries, time.Since(began))
			return nil, errors.New(strconv.Itoa(len(tries)))
		}})
		for n, want := range map[int][]time.Duration{
			1: {dialTimeout},
			3: {moveOn, 2 * moveOn, 2*moveOn + dialTimeout},
			9: {moveOn, 2 * moveOn, 3 * moveOn, 3*moveOn + dialTimeout},
		} {
			began, tries = time.Now(), nil
			if _, err := client.connect(t.Context(), "tcp", slices.Repeat([]netip.Addr{somewhere}, n), "80"); err == nil ||
				err.Error() != "1" || !slices.Equal(tries, want) {
				t.Errorf("%d addresses: %v after %v, want %v", n, err, tries, want)
			}
		}
		quick = true
		_, _ = client.connect(t.Context(), "tcp", []netip.Addr{somewhere, somewhere}, "80")
	})
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	client := New(Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled for somebody who is gone")
		return nil, io.EOF
	}})
	if _, err := client.connect(ctx, "tcp", []netip.Addr{somewhere}, "80"); err != why {
		t.Errorf("nobody waits: %v", err)
	}
}

// What cannot be looked up, or is no canonical host and port, is not dialled.
func TestDial(t *testing.T) {
	client := New(Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{somewhere}, io.ErrNoProgress
	}})
	for host, want := range map[string]error{
		"api.example.com:80": io.ErrNoProgress, "HOST:80": errTarget,
		"host.:80": errTarget, "127.1:80": errTarget,
	} {
		if conn, err := client.dial(t.Context(), "tcp", host); conn != nil || err != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}
