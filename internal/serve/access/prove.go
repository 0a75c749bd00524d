package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
)

// byHeader judges Authorization, and nothing else: who brings a token that is
// not good is not taken for who they might be without it.
func (a *Access) byHeader(r *http.Request, headers []string) (*proof, error) {
	if len(headers) > 1 {
		return nil, denied(http.StatusBadRequest, "bad_token", "there are two Authorization headers; send one")
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil, a.unauthorized("write Authorization: Bearer, a space and the token")
	}
	return a.byToken(r, token)
}

// byToken judges the text of a token.
func (a *Access) byToken(r *http.Request, text string) (*proof, error) {
	parsed, formErr := parseToken(text)
	var record *Token
	var storeErr error
	if a.o.Tokens != nil && formErr == nil {
		record, storeErr = a.o.Tokens.byID(parsed.id)
	}
	key := parsed.id
	if formErr != nil && a.o.OperatorToken != "" {
		key = "operator" // no id has eight letters
	}
	isOperator, isToken := false, false
	from := a.source(r)
	ok, wait := a.tries.attempt(a.o.Now(), from, key, func() bool {
		got, want := digestOf(text), digest{}
		if record != nil {
			want = record.secret
		}
		// Both are compared whatever the other says, and where there is no record
		// with a digest that nothing has.
		isOperator = subtle.ConstantTimeCompare(got[:], a.operator[:]) == 1 && a.o.OperatorToken != ""
		isToken = subtle.ConstantTimeCompare(got[:], want[:]) == 1 && record != nil && record.stated
		return isOperator || isToken
	})
	switch {
	case wait > 0:
		a.tell(slog.LevelWarn, "access.held", "from", from, "token", parsed.id, "wait_ms", wait.Milliseconds())
		return nil, &Denied{
			Status: http.StatusTooManyRequests, Code: "too_many_attempts", RetryAfter: wait,
			Message: "too many attempts failed from here or with this token; wait as long as Retry-After says",
		}
	case storeErr != nil:
		a.tell(slog.LevelError, "access.unreadable", "error", storeErr.Error())
		return nil, denied(http.StatusServiceUnavailable, "unavailable",
			"tokens cannot be judged now; the service's log says why")
	case !ok:
		a.tell(slog.LevelWarn, "access.denied", "from", from, "token", parsed.id, "why", "no such token")
		return nil, a.unauthorized("the token is not good here; use one that the operator made with rlp token new, without " +
			"quotes or spaces")
	case isOperator:
		p := a.operatorProof("operator", "token:operator")
		p.chooses, p.caller.EveryTenant = false, false
		return p, nil
	}
	return a.byRecord(r.Context(), record)
}

// byRecord makes the caller of a record that was proved.
func (a *Access) byRecord(ctx context.Context, t *Token) (*proof, error) {
	now := a.o.Now()
	if state := t.State(now); state != "good" { // who proved it may know
		a.tell(slog.LevelWarn, "access.denied", "caller", t.Caller(), "token", t.ID, "why", state)
		return nil, a.unauthorized("the token is " + state + "; ask the operator for another one")
	}
	layers, err := a.layersOf(ctx, t, now)
	if err != nil {
		a.tell(slog.LevelError, "access.unreadable", "caller", t.Caller(), "token", t.ID, "error", err.Error())
		return nil, denied(http.StatusServiceUnavailable, "unavailable",
			"what this token may cannot be read now; the service's log says why")
	}
	a.o.Tokens.touch(t.ID)
	p := &proof{token: t, caller: service.Caller{
		ID: t.callerID(), Name: t.Caller(), Tenant: t.Tenant, May: t.May,
		Layers: layers, Until: t.Expires,
	}}
	p.caller.Still = func() error { return a.stands(p, a.o.Now()) }
	return p, nil
}

// layersOf is what a token narrows. What was read counts for a moment.
func (a *Access) layersOf(ctx context.Context, t *Token, now time.Time) ([]*caps.Layer, error) {
	if len(t.Profiles) == 0 && t.Grant == "" {
		return nil, nil
	}
	a.mu.Lock()
	c := a.layers[t.ID]
	a.mu.Unlock()
	if age := now.Sub(c.read); c.token == t && age >= 0 && age < rereadAfter {
		return c.layers, nil
	}
	layers, err := a.o.Layers(ctx, t)
	if err == nil && len(layers) == 0 {
		err = errors.New("the grant of the token is no layer")
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.layers[t.ID] = cached{t, layers, now}
	return layers, nil
}

// still reports whether what was proved holds now.
func (a *Access) still(p *proof) error {
	now := a.o.Now()
	if u := p.caller.Until; !u.IsZero() && !now.Before(u) {
		return errors.New("the token is expired")
	}
	if p.session != "" && !a.sessions.has(p.session, now) {
		return errors.New("the session is over")
	}
	return a.stands(p, now)
}

// stands reports whether what somebody proved themselves by, whatever became of
// the connection or the session since, is good now. It says nothing of where
// things are.
func (a *Access) stands(p *proof, now time.Time) error {
	if p.token == nil {
		return nil
	}
	t, err := a.o.Tokens.byID(p.token.ID)
	switch {
	case err != nil:
		return errors.New("the token cannot be read now")
	case t == nil || t.secret != p.token.secret || t.CertHash != p.token.CertHash || t.CertName != p.token.CertName:
		return errors.New("the token is not there any more")
	case t.State(now) != "good":
		return errors.New("the token is " + t.State(now))
	case t.Tenant != p.token.Tenant || t.May&p.token.May != p.token.May:
		return errors.New("the token may less than before")
	case p.cert != nil && ended(p.cert, now):
		return errors.New("the certificate is expired")
	}
	return nil
}

// lastForwarded is the address that the proxy in front added; what stands before
// it is what the asker says.
func lastForwarded(r *http.Request) (netip.Addr, bool) {
	all := r.Header["X-Forwarded-For"]
	if len(all) == 0 {
		return netip.Addr{}, false
	}
	last := all[len(all)-1]
	addr, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]))
	return addr.Unmap().WithZone(""), err == nil
}
