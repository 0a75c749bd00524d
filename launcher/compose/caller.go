package compose

import (
	"errors"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/run"
)

// CallerLayer is what the flags of this invocation take away. A family that
// --allow names is bounded as a whole: what is not allowed in it is gone.
func CallerLayer(f Flags, domains []string) (*caps.Layer, error) {
	l := &caps.Layer{Name: run.CallerLayer}
	var err error
	if l.Allow, err = granted("--allow", f.Allow, domains); err != nil {
		return nil, err
	}
	for _, e := range l.Allow {
		l.Bounds = append(l.Bounds, caps.Bound{Family: e.Grant.Family, Modes: caps.AllModes(e.Grant.Family), Pos: e.Pos})
	}
	for _, text := range f.Deny {
		grants, err := caps.ParseDeny(text)
		if err != nil {
			return nil, Usagef("--deny %s: %w", text, err)
		}
		for _, g := range grants {
			if err := policy.KnownDomain(g, domains); err != nil {
				return nil, Usagef("--deny %s: %w", text, err)
			}
			l.Deny = append(l.Deny, caps.Entry{Grant: g, Pos: caps.Pos{File: "--deny " + text}})
		}
	}
	for _, text := range f.Limits {
		if err := addLimit(l, text); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// granted are the capabilities of a list that is called flag.
func granted(flag string, list, domains []string) (entries []caps.Entry, err error) {
	for _, text := range list {
		g, err := caps.ParseGrant(text)
		if err == nil {
			err = policy.KnownDomain(g, domains)
		}
		if err == nil && g.Family == caps.Net && g.Modes.Has(caps.Bytes) && strings.HasPrefix(g.Scope, "*") {
			err = errors.New("bytes are granted to one host and port each")
		}
		if err != nil {
			return nil, Usagef("%s %s: %w", flag, text, err)
		}
		entries = append(entries, caps.Entry{Grant: g, Pos: caps.Pos{File: flag + " " + text}})
	}
	return entries, nil
}

func addLimit(l *caps.Layer, text string) error {
	key, value, ok := strings.Cut(text, "=")
	n, err := strconv.ParseInt(strings.ReplaceAll(value, "_", ""), 10, 64)
	if !ok || err != nil {
		return Usagef("--limit %s: write it as KEY=N, such as wall_time_ms=1000", text)
	}
	if _, _, known := caps.LimitOf(key); !known {
		var keys []string
		for l := range caps.NumLimits {
			keys = append(keys, l.String())
		}
		return Usagef("--limit %s: there is no limit %q; the limits are %s", text, key, strings.Join(keys, ", "))
	}
	limit, v, err := caps.ParseLimit(key, n)
	if err != nil {
		return Usagef("--limit %s: %w", text, err)
	}
	l.Limits = l.Limits.Min(caps.Limits{}.With(limit, v))
	return nil
}
