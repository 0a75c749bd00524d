package hostcalls

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// A redirect that still writes needs a yes of its own: after a no nothing more is sent.
// Nobody is asked about one that reads, or goes where the policy does not let it.
//
//rlp:holds R80
func TestARedirectNeedsItsOwnYes(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		location    string
		answers     []bool
		asked, sent int
		reason      string
	}{
		"yes twice": {http.StatusTemporaryRedirect, "https://other.example/b", []bool{true, true}, 2, 2, ""},
		"yes, then no": {
			http.StatusTemporaryRedirect, "https://other.example/b",
			[]bool{true, false},
			2, 1,
			"not_confirmed",
		},
		"no":       {http.StatusTemporaryRedirect, "https://other.example/b", []bool{false}, 1, 0, "not_confirmed"},
		"it reads": {http.StatusFound, "https://other.example/b", []bool{true, false}, 1, 2, ""},
		"it is not let to": {
			http.StatusTemporaryRedirect, "https://third.example/b",
			[]bool{true, true},
			1, 1,
			"host_not_permitted",
		},
	} {
		w := apiWorld(t)
		seen := hops(w, c.status, c.location)
		r := netRig(t, w, apiPolicy)
		asked := 0
		r.host.cfg.ConfirmExternal = true
		r.host.cfg.Confirm = func(context.Context, Question) (bool, string) {
			asked++
			return c.answers[asked-1], "by the test"
		}
		n, text := r.call(netHTTPName, `{"method":"POST","url":"https://api.example.com/a"}`, "body")
		if (n >= 0) != (c.reason == "") || c.reason != "" && !strings.Contains(text, c.reason) || asked != c.asked ||
			len(*seen) != c.sent {
			t.Errorf("%s: %d %.80q, asked %d times, sent %q", name, n, text, asked, *seen)
		}
	}
}

// What a redirect makes a reading request of has no body and says nothing of one; a
// request for a head alone stays one.
func TestARedirectThatReadsHasNoBody(t *testing.T) {
	for method, want := range map[string]string{"POST": "GET", "PUT": "GET", "GET": "GET", "HEAD": "HEAD"} {
		w := apiWorld(t)
		seen := hops(w, http.StatusFound, "/b")
		r := netRig(t, w, apiPolicy)
		req := map[string]any{
			"method": method, "url": "https://api.example.com/a",
			"headers": map[string]string{"Accept": "text/plain"},
		}
		body := ""
		if want != method {
			req["headers"], body = map[string]string{
				"Accept": "text/plain", "Content-Type": "text/plain",
				"Content-Language": "de",
			}, "body"
		}
		if n, _ := r.http(req, body); n < 0 || len(*seen) != 2 {
			t.Fatalf("%s: %d, sent %q", method, n, *seen)
		}
		if got := (*seen)[1]; !strings.HasPrefix(got, want+" api.example.com/b ") || strings.Contains(got, "Content-") ||
			!strings.Contains(got, "Accept ") || !strings.HasSuffix(got, ` ""`) {
			t.Errorf("%s: then %q", method, got)
		}
		if body != "" && !strings.Contains((*seen)[0], "Content-Type") {
			t.Errorf("control: %s: first %q", method, (*seen)[0])
		}
	}
}

// A body of more than 64 MiB is refused before anything of it is sent.
func TestTheLargestBody(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	r.mem = make([]byte, MaxRequestBody+1<<17)
	const req = `{"method":"POST","url":"https://api.example.com/a"}`
	copy(r.mem[16:], req)
	const at = 1 << 16
	stack := []uint64{16, uint64(len(req)), at, MaxRequestBody + 1, 1024, 0}
	if err := r.funcs[netHTTPName].Call(t.Context(), r.mem, stack); err != nil || int64(stack[0]) != -int64(TooBig) ||
		len(w.requests()) > 0 {
		t.Errorf("%d, %v, sent %v", int64(stack[0]), err, w.requests())
	}
	stack = []uint64{16, uint64(len(req)), at, MaxRequestBody, 1024, 0}
	if err := r.funcs[netHTTPName].Call(t.Context(), r.mem, stack); err != nil || int64(stack[0]) < 0 ||
		len(w.requests()) != 1 {
		t.Errorf("control: %d, %v, sent %v", int64(stack[0]), err, w.requests())
	}
}

// A tool that says nothing of its time has the one that every program has.
func TestAToolWithoutATimeHasTheUsualOne(t *testing.T) {
	tool := grepTool()
	tool.Program.Timeout = 0
	r, f := toolRig(t, tool, grepGrants...)
	if n, text := r.use("count", `{}`); n < 0 || len(f.ran) != 1 || f.ran[0].Timeout != defaultTimeout {
		t.Errorf("%d %s, ran %+v", n, text, f.ran)
	}
}
