package hostcalls

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

// told is all that a guest, and a report, can tell of requests that a server
// echoes, where the secret has this value.
func told(t *testing.T, value string, most int64) []string {
	t.Helper()
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	w := apiWorld(t)
	var r *rig
	w.handler = func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if req.URL.Path == "/away" {
			http.Redirect(rw, req, "/x?key="+url.QueryEscape(req.Header.Get("X-Key")), http.StatusTemporaryRedirect)
			return
		}
		rw.Header()["Date"] = nil
		rw.Header().Set("X-Echo", req.Header.Get("X-Key"))
		rw.Header().Set("X-Length", "as it is")
		echo := req.Header.Get("X-Key") + string(body)
		rw.Header().Set("Content-Length", fmt.Sprint(len(echo)))
		_, _ = io.WriteString(rw, echo)
	}
	r = netRig(t, w, "schema = \"0.2\"\n[capabilities]\nnet = [\"api.example.com\"]\nsecrets = [\""+mailKey+"\"]\n")
	r.host.cfg.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
		return secrets.Open(secrets.Config{Provider: "env", Tenant: tenant, Env: []string{"RLP_SECRET_default_0mail_0key=" +
			value}})
	})
	handle := r.handle(mailKey)
	r.host.budget.Bound(caps.Limits{}.With(caps.NetBytes, most))
	var all []string
	for _, path := range []string{"/x", "/away"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			req := map[string]any{"method": method, "url": "https://api.example.com" + path, "headers": map[string]any{
				"X-Key": []string{"Bearer " + handle}, "Content-Type": "application/x-www-form-urlencoded",
			}}
			body := ""
			if method == "POST" {
				body = "a=1&key=" + handle
			}
			n, a := r.http(req, body)
			left, _ := r.host.budget.Left(caps.NetBytes)
			all = append(all, fmt.Sprint(path, method, n, a, left))
		}
	}
	for _, e := range r.log.Events {
		all = append(all, fmt.Sprint(e.Status, e.Bytes))
	}
	return all
}

// Nothing that a guest is told has a length by which it could tell how long a
// value is: not the answer, not its headers, and not what is left of a limit.
func TestLengthsTellNothingOfAValue(t *testing.T) {
	short, long := "s3cr3t-v", strings.Repeat("long&value=", 300)
	for _, most := range []int64{1 << 20, 2500, 1000, 500} {
		one, other := told(t, short, most), told(t, long, most)
		if !slices.Equal(one, other) {
			t.Errorf("net_bytes = %d: %q\n%q", most, one, other)
		}
		if most == 1<<20 && (!strings.Contains(one[0], "[secret "+mailKey+"]") || strings.Contains(one[0],
			"Content-Length") || !strings.Contains(one[0], "X-Length")) {
			t.Errorf("control: %q", one[0])
		}
	}
	// control: a run that knows no value is told the length
	w := apiWorld(t)
	if n, a := netRig(t, w, apiPolicy).get("https://api.example.com/"); n < 0 || a.Headers["Content-Length"] != "5" {
		t.Errorf("control: %d %+v", n, a)
	}
}
