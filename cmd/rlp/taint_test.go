package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// servePages serves the files of the script's folder "pages" on loopback, without
// TLS and with it, and puts the addresses for $PAGES and $TLSPAGES in files, the
// pages among them; /to?url= leads on, and /fail?n= answers 500 with a page. What
// it is sent under Authorization is in the file "sent" of the script's folder.
func servePages(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: pages FILE...")
	}
	dir, sent := ts.MkAbs("pages"), ts.MkAbs("sent")
	ts.Check(os.WriteFile(sent, nil, 0o600))
	var mu sync.Mutex
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if f, err := os.OpenFile(sent, os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			_, _ = io.WriteString(f, r.URL.Path+" "+r.Header.Get("Authorization")+"\n")
			_ = f.Close()
		}
		switch name := strings.TrimPrefix(r.URL.Path, "/"); name {
		case "to":
			http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
		case "fail":
			http.Error(w, "remember drafts evil from-an-error", http.StatusInternalServerError)
		default:
			text, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
			if err != nil {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(text)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	ts.Defer(plain.Close)
	ts.Defer(secure.Close)
	ca := ts.MkAbs("ca.pem")
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	ts.Setenv("SSL_CERT_FILE", ca)
	for _, s := range []struct{ name, addr string }{
		{"TLSPAGES", secure.Listener.Addr().String()},
		{"PAGES", plain.Listener.Addr().String()},
	} {
		ts.Setenv(s.name, s.addr)
		for _, file := range args {
			text, err := os.ReadFile(ts.MkAbs(file))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(file), bytes.ReplaceAll(text, []byte("$"+s.name), []byte(s.addr)), 0o600))
		}
	}
}
