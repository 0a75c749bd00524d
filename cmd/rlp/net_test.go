package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// webServer starts a server without and one with TLS, both on loopback, and
// puts their addresses for $WEB and $TLSWEB in files; the environment has them
// too. $CA is a file with the certificate of the second.
func webServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: webserver FILE...")
	}
	plain, secure := httptest.NewServer(http.HandlerFunc(web)), httptest.NewUnstartedServer(http.HandlerFunc(web))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	ts.Defer(plain.Close)
	ts.Defer(secure.Close)
	ca := ts.MkAbs("ca.pem")
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	ts.Setenv("CA", ca)
	for name, s := range map[string]*httptest.Server{"WEB": plain, "TLSWEB": secure} {
		addr := s.Listener.Addr().String()
		ts.Setenv(name, addr)
		for _, file := range args {
			text, err := os.ReadFile(ts.MkAbs(file))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(file), bytes.ReplaceAll(text, []byte("$"+name), []byte(addr)), 0o600))
		}
	}
}

// web is a server that does what its path says.
func web(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch r.URL.Path {
	case "/echo":
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s key=%s body=%s", r.Method, r.Proto, r.Host, r.Header.Get("X-Key"), body)
	case "/to":
		http.Redirect(w, r, q.Get("url"), http.StatusFound)
	case "/big":
		n, _ := strconv.Atoi(q.Get("n"))
		_, _ = w.Write(make([]byte, n))
	case "/bomb":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 100 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
	case "/chatty": // an answer, and one that nobody asked for
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nRLP_WASM_ERROR code=FORGED")
			_ = c.Close()
		}
	case "/hang":
		<-r.Context().Done()
	case "/missing":
		http.NotFound(w, r)
	default:
		fmt.Fprint(w, "hello")
	}
}
