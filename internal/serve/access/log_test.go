package access

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever is tried, the log says who and why, and has no token, no cookie and no
// digest of one; and however much is tried, it does not grow without end.
//
//rlp:holds K57
func TestTheLogHoldsNoTokens(t *testing.T) {
	const operator = "0123456789abcdef0123456789abcdef"
	var out bytes.Buffer
	now := time.Now()
	k := kitOf(t, func(o *Options) {
		o.Log, o.OperatorToken = slog.New(slog.NewJSONHandler(&out, nil)), operator
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	made, text := k.token(t, nil)
	h := k.Wrap(http.NotFoundHandler())
	cookie := logIn(t, h, text, "192.0.2.1")
	secrets := []string{text[16:40], operator, cookie.Value, digestOf(text).String(), "hunter2hunter2"}
	wrong := wrongOf(text)
	for _, r := range []*http.Request{
		bearer(t, text), bearer(t, wrong), bearer(t, operator), bearer(t, operator+"x"), request(t),
		request(t, "Authorization", "Basic hunter2hunter2"),
		request(t, "Authorization", text), bearer(t, text, "Origin", "https://evil.example"),
		request(t, "Cookie", "rlp_session=hunter2hunter2"),
		browser(t, "GET", "/runs", "192.0.2.9", nil, cookie), browser(t, "POST", LoginPath, "192.0.2.1",
			url.Values{"token": {wrong}}),
		browser(t, "POST", LoginPath, "192.0.2.1", url.Values{"token": {text}}), browser(t, "GET", "/runs?token="+text,
			"192.0.2.1", nil),
	} {
		visit(t, h, r)
	}
	if _, err := k.store.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	visit(t, h, bearer(t, text))
	for _, event := range []string{
		"access.denied", "access.refused", "access.login", "access.anonymous", "revoked",
		made.ID, "192.0.2.1",
	} {
		if !strings.Contains(out.String(), event) {
			t.Errorf("control: nothing is said of %s in\n%s", event, &out)
		}
	}
	for i, s := range secrets {
		if strings.Contains(out.String(), s) {
			t.Errorf("secret %d is in the log", i)
		}
	}
	now = now.Add(time.Hour)
	out.Reset()
	for range 10 * maxTold {
		visit(t, h, request(t))
	}
	if lines := strings.Count(out.String(), "\n"); lines != maxTold {
		t.Errorf("%d lines in a minute", lines)
	}
	now = now.Add(time.Minute)
	out.Reset()
	visit(t, h, request(t))
	if !strings.Contains(out.String(), `"lines":2700`) {
		t.Errorf("what was left out is not said: %s", &out)
	}
}
