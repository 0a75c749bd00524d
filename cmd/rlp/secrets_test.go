package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// nowhere wants that no file below any PATH holds the value that a file holds,
// in any encoding: nowhere FILE PATH...; with ! it wants one to.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: nowhere FILE PATH...")
	}
	value := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	found := ""
	for _, root := range args[1:] {
		err := filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data = bytes.ToLower(bytes.TrimRight(data, "\x00")) // what a store keeps ahead is empty
			for how, text := range writings(value) {
				if bytes.Contains(data, []byte(strings.ToLower(text))) {
					found += "\n" + path + " as " + how
				}
			}
			return nil
		})
		ts.Check(err)
	}
	if (found != "") != neg {
		ts.Fatalf("the value of %s is in:%s", args[0], found)
	}
}

// writings are the ways in which a value may be written, without the
// characters that also hold bits of what stands beside it.
func writings(v string) map[string]string {
	text, _ := json.Marshal(v)
	all := map[string]string{
		"text": v, "hex": hex.EncodeToString([]byte(v)), "query": url.QueryEscape(v), "path": url.PathEscape(v),
		"json": string(text[1 : len(text)-1]),
	}
	for pad := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", pad) + v))
		b = b[(8*pad+5)/6 : 8*(pad+len(v))/6]
		all["base64"+strings.Repeat("+", pad)] = b
		all["base64url"+strings.Repeat("+", pad)] = strings.NewReplacer("+", "-", "/", "_").Replace(b)
	}
	return all
}

// echoServer starts a server that tells everybody the Authorization that it was
// sent, in every way of writing it, and puts its address for $ECHO in files.
func echoServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: echoserver FILE...")
	}
	var seen []string
	last := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/seen" { // for the test itself
			fmt.Fprintln(w, strings.Join(seen, "\n"))
			return
		}
		value := r.Header.Get("Authorization")
		if r.URL.Path == "/last" { // what somebody else was heard to say
			back := []byte(last)
			slices.Reverse(back)
			fmt.Fprintf(w, "last %s, backwards %s", last, back)
			return
		}
		last = cmp.Or(value, last)
		seen = append(seen, r.URL.Path+" "+value)
		if to := r.URL.Query().Get("to"); to != "" { // sends the value elsewhere
			w.Header().Set("Location", to+strings.TrimPrefix(value, "Bearer "))
			w.WriteHeader(http.StatusFound)
			return
		}
		if value == "" {
			return
		}
		w.Header()[strings.ReplaceAll(strings.TrimPrefix(value, "Bearer "), "/", "-")] = []string{"1"}
		w.Header().Set("X-Echo", value)
		for how, text := range writings(value) {
			if !strings.HasPrefix(how, "base64") {
				fmt.Fprintf(w, "%s: %s\n", how, text)
			}
		}
		for pad := range 3 {
			b := []byte(strings.Repeat("x", pad) + value)
			fmt.Fprintf(w, "base64 %s %s\n", base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
		}
	}))
	ts.Defer(s.Close)
	addr := s.Listener.Addr().String()
	ts.Setenv("ECHO", addr)
	ts.Setenv("ECHO_BY_NAME", strings.Replace(addr, "127.0.0.1", "localhost", 1))
	for _, name := range args {
		text, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		text = bytes.ReplaceAll(text, []byte("$ECHO_BY_NAME"), []byte(ts.Getenv("ECHO_BY_NAME")))
		ts.Check(os.WriteFile(ts.MkAbs(name), bytes.ReplaceAll(text, []byte("$ECHO"), []byte(addr)), 0o600))
	}
}

// seen fetches what the echo server was sent.
func seen(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: seen TEXT")
	}
	resp, err := http.Get("http://" + ts.Getenv("ECHO") + "/seen")
	ts.Check(err)
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	ts.Check(err)
	if strings.Contains(b.String(), args[0]) == neg {
		ts.Fatalf("the server was sent %q", b.String())
	}
}
