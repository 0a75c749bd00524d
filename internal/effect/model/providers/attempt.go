package providers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/internal/effect/model"
)

// maxAttempts is how often one call asks at most, the first time included.
const maxAttempts = 4

// maxBackoff bounds a wait that the provider did not ask for.
const maxBackoff = 8 * time.Second

// attempts asks until an answer comes or it makes no sense to ask again: at
// once where the deadline would be over before the wait is.
func (p *Providers) attempts(ctx context.Context, t model.Target, ask func(context.Context,
	*progress) error,
) (*progress, error) {
	for n := 1; ; n++ {
		got := &progress{metered: model.Unmetered()}
		trying, seen := withAttempt(ctx)
		err := ask(trying, got)
		if err == nil && got.ended {
			return got, nil
		}
		f := failure(ctx, seen, got, err)
		f.Detail = clean(f.Detail, t.Key)
		wait, again := p.wait(seen, f, n)
		if !again || !p.sleep(ctx, wait) {
			return nil, f
		}
	}
}

// sleep waits, and says whether the wait was worth it.
func (p *Providers) sleep(ctx context.Context, wait time.Duration) bool {
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait is how long to wait before the next attempt, if there is to be one. Only
// what cost nothing is asked for again.
func (p *Providers) wait(seen *attempt, f *model.Failure, n int) (time.Duration, bool) {
	if n >= maxAttempts || f.Charge != model.ChargeNothing || f.Kind == model.TimedOut || f.Kind == model.Cancelled {
		return 0, false
	}
	_, status, header := seen.look()
	if !mayRepeat(status, header, f) {
		return 0, false
	}
	d := min(p.backoff<<(n-1), maxBackoff)
	d = d/2 + rand.N(d/2+1)
	if f.RetryAfter > 0 { // never before the provider said; a little after, not all at once
		d = f.RetryAfter + rand.N(min(f.RetryAfter/10, time.Second)+1)
	}
	return d, true
}

func mayRepeat(status int, header http.Header, f *model.Failure) bool {
	switch header.Get("x-should-retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch {
	case status == 0:
		return f.Kind == model.Unavailable
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		return false
	case strings.Contains(f.Detail, "insufficient_quota"):
		return false
	}
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// failure says what went wrong, and what it may have cost.
func failure(ctx context.Context, seen *attempt, got *progress, err error) *model.Failure {
	var f *model.Failure
	if errors.As(err, &f) {
		return f
	}
	sent, status, header := seen.look()
	f = &model.Failure{Kind: model.Broken, Status: status, Charge: model.ChargeReserved, RetryAfter: retryAfter(header)}
	switch {
	case status >= 400:
		f.Charge, f.Kind, f.Detail = model.ChargeNothing, kindOf(status), detail(err)
	case errors.Is(err, errElsewhere):
		f.Charge, f.Kind, f.Detail = model.ChargeNothing, model.Unavailable, "it redirects to another host"
	case got.began:
		f.Charge, f.Metered, f.Received = model.ChargeMeasured, got.metered, got.size
	case !sent:
		f.Charge, f.Kind, f.Detail = model.ChargeNothing, model.Unavailable, "nobody answers at the provider's address"
	}
	if errors.Is(err, errTooLarge) {
		f.Kind = model.TooLarge
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Kind = model.TimedOut
	case ctx.Err() != nil:
		f.Kind = model.Cancelled
	}
	return f
}

func kindOf(status int) model.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired:
		return model.Refused
	case http.StatusNotFound:
		return model.NotFound
	case http.StatusTooManyRequests:
		return model.RateLimited
	case http.StatusRequestEntityTooLarge:
		return model.TooLarge
	case http.StatusRequestTimeout:
		return model.Unavailable
	}
	if status >= 500 {
		return model.Unavailable
	}
	return model.Invalid
}

// retryAfter is what a provider asks for: milliseconds, seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := h.Get("retry-after")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 86400) * float64(time.Second))
}

// maxDetail bounds what a guest is told in a provider's own words, in bytes.
const maxDetail = 300

// clean takes the key, line breaks and length out of a provider's words.
func clean(s string, key model.Key) string {
	if k := key.Reveal(); k != "" {
		s = strings.ReplaceAll(s, k, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxDetail {
		s = strings.ToValidUTF8(s[:maxDetail], "") + "..."
	}
	return s
}

func unsupported(format string, args ...any) *model.Failure {
	return &model.Failure{Kind: model.Invalid, Charge: model.ChargeNothing, Detail: fmt.Sprintf(format, args...)}
}
