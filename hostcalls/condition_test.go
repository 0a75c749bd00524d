package hostcalls

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
)

const conditioned = "[capabilities]\nnet = { hosts = [\"api.example.com\", \"other.example.com\"], allow_http = true " +
	"}\n"

// under narrows the rig's run by one condition.
func (r *rig) under(c caps.Constraint, v int64) *rig {
	r.t.Helper()
	if err := r.gate.Hold(&caps.Layer{Name: "profile:x", Constraints: caps.Constraints{}.With(c, v)}); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// hinted wants the refusal to name the condition that made it.
func hinted(t *testing.T, hint, key string) {
	t.Helper()
	if !strings.Contains(hint, "constraints."+key) {
		t.Errorf("the hint %q does not name %s", hint, key)
	}
}

// What a layer says of lengths, time, redirects and encryption is kept where
// bytes are sent and received; without the layer each of these requests goes
// through, which is the control.
//
//rlp:holds A12 A13 A17 A56
func TestConditionsOfTheNetwork(t *testing.T) {
	w := apiWorld(t)
	w.name("other.example.com", w.answers["api.example.com"][0])
	api, post := map[string]any{"url": "https://api.example.com/"}, map[string]any{
		"url":    "https://api.example.com/",
		"method": "POST",
	}
	fresh := func() *rig { return netRig(t, w, conditioned) }
	sent := func(r *rig, req map[string]any, body string) bool {
		before := len(w.requests())
		n, _ := r.http(req, body)
		return n >= 0 && len(w.requests()) == before+1
	}
	if !sent(fresh(), post, "four") || !sent(fresh().under(caps.NetMaxRequestBytes, 4), post, "four") {
		t.Error("control: a body that is short enough is not sent")
	}
	hinted(t, fresh().under(caps.NetMaxRequestBytes, 3).refused(post, "four", -19, "budget_exhausted"),
		"net.max_request_bytes")

	if _, a := fresh().under(caps.NetMaxResponseBytes, 64).get("https://api.example.com/"); a.Body == "" {
		t.Error("control: an answer that is short enough is not given")
	}
	hinted(t, fresh().under(caps.NetMaxResponseBytes, 1).refused(api, "", -19, "budget_exhausted"),
		"net.max_response_bytes")

	before := len(w.requests())
	hinted(t, fresh().under(caps.NetTimeoutMS, 0).refused(api, "", -19, "budget_exhausted"), "net.timeout_ms")
	fresh().under(caps.NetMinTLS, 13).refused(map[string]any{"url": "http://api.example.com/"}, "", -2,
		"http_not_permitted")
	if n := len(w.requests()) - before; n != 0 {
		t.Errorf("%d requests were sent that no condition leaves", n)
	}
}

// A call that may last so long lasts no longer, whatever the guest asks for.
func TestTimeoutCondition(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	r := netRig(t, w, conditioned).under(caps.NetTimeoutMS, 20)
	if n, _ := r.http(map[string]any{"url": "https://api.example.com/", "timeout_ms": 600_000}, ""); n != -73 {
		t.Errorf("%d, want a timeout", n)
	}
}

// A redirect that is not to be followed is the answer.
func TestRedirectCondition(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(rw, r, "/next", http.StatusFound)
		}
	}
	if _, a := netRig(t, w, conditioned).get("https://api.example.com/"); a.Status != 200 {
		t.Errorf("control: %+v", a)
	}
	if _, a := netRig(t, w, conditioned).under(caps.NetAllowRedirects,
		1).get("https://api.example.com/"); a.Status != 200 {
		t.Errorf("control: allowed by a layer: %+v", a)
	}
	before := len(w.requests())
	if _, a := netRig(t, w, conditioned).under(caps.NetAllowRedirects,
		0).get("https://api.example.com/"); a.Status != 302 || a.Headers["Location"] != "/next" ||
		len(w.requests()) != before+1 {
		t.Errorf("%+v, asked for %v", a, w.requests()[before:])
	}
}

// Nothing is sent to a server that speaks a lower version than is wanted.
func TestTLSCondition(t *testing.T) {
	w := apiWorld(t)
	w.maxTLS = tls.VersionTLS12
	if _, a := netRig(t, w, conditioned).under(caps.NetMinTLS, 12).get("https://api.example.com/"); a.Status != 200 {
		t.Fatalf("control: %+v", a)
	}
	before := len(w.requests())
	if n, _ := netRig(t, w, conditioned).under(caps.NetMinTLS, 13).get("https://api.example.com/"); n != -29 ||
		len(w.requests()) != before {
		t.Errorf("%d, asked for %v", n, w.requests()[before:])
	}
	w.maxTLS = 0
	if _, a := netRig(t, w, conditioned).under(caps.NetMinTLS, 13).get("https://api.example.com/"); a.Status != 200 {
		t.Errorf("TLS 1.3 is there and is not used: %+v", a)
	}
}

// The conditions of the other families are kept where they bear on something.
func TestConditionsOfOtherFamilies(t *testing.T) {
	kb := newRig(t, "kb:write:drafts")
	if n, _ := kb.under(caps.KBMaxValueBytes, 4).call("kb_put", "drafts", "k", "four"); n < 0 {
		t.Errorf("control: %d", n)
	}
	n, d := kb.denial("kb_put", "drafts", "k", "fives")
	if Errno(-n) != Dquot || d.Reason != "budget_exhausted" {
		t.Errorf("%d %+v", n, d)
	}
	hinted(t, d.Hint, "kb.max_value_bytes")

	exec, f := execRig(t, "process:exec:/usr/bin/grep")
	if _, _ = exec.under(caps.ExecTimeoutMS, 50).call(execRunName, `{"argv":["/bin/grep"],"timeout_ms":9000}`,
		""); len(f.ran) != 1 || f.ran[0].Timeout.Milliseconds() != 50 {
		t.Errorf("%+v", f.ran)
	}
	long, ran := execRig(t, "process:exec:/usr/bin/grep")
	if _, _ = long.under(caps.ExecTimeoutMS, 60_000).call(execRunName, `{"argv":["/bin/grep"],"timeout_ms":9000}`,
		""); len(ran.ran) != 1 || ran.ran[0].Timeout.Milliseconds() != 9000 {
		t.Errorf("a condition gives more than is asked for: %+v", ran.ran)
	}
	n, d = exec.under(caps.ExecTimeoutMS, 0).denial(execRunName, `{"argv":["/bin/grep"]}`, "")
	if Errno(-n) != Dquot || len(f.ran) != 1 {
		t.Errorf("%d %+v, ran %d", n, d, len(f.ran))
	}
	hinted(t, d.Hint, "exec.timeout_ms")

	m, _ := modelRig(t, "model:use:*")
	m.under(caps.ModelMaxTokens, 2)
	if _, text := m.call("model_complete", askJSON(model.Echo, "a b c d")); !strings.Contains(text, `"tokens_out":2`) {
		t.Errorf("%s", text)
	}
	if _, text := m.call("model_complete", strings.Replace(askJSON(model.Echo, "a b c d"), `"max_tokens":4`,
		`"max_tokens":1`, 1)); !strings.Contains(text, `"tokens_out":1`) {
		t.Errorf("fewer tokens than there may be: %s", text)
	}
	if n, text := m.call("model_embed", `{"input":["a"]}`); n < 0 && !strings.Contains(text, "model") {
		t.Errorf("what has no answer of that length: %d %s", n, text)
	}
	if n, d := m.under(caps.ModelMaxTokens, 0).denial("model_complete", askJSON(model.Echo, "a")); Errno(-n) != Dquot ||
		!strings.Contains(d.Hint, "max_tokens") {
		t.Errorf("%d %+v", n, d)
	}
}
