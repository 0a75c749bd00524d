package policy

import (
	"cmp"
	"math"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func limitKeys() []string {
	var keys []string
	for l := range caps.NumLimits {
		keys = append(keys, l.String())
	}
	return append(keys, limitAliases()...)
}

// limitAliases are the spellings of another system that [caps.LimitOf] knows.
func limitAliases() []string { return []string{"max_steps", "max_adapter_calls", "max_time_ms"} }

// foreignLimits are another system's bounds on what a module has not, and the
// limits that bound the same here.
func foreignLimits() map[string]string {
	return map[string]string{
		"max_frame_bytes": "a module has no frames of variables but its memory and stack: write memory_bytes",
		"max_loop_iters":  "loops are counted by their instructions: write cpu_fuel, or max_steps",
	}
}

func limitOf(key string) (l caps.Limit, ok bool, unit int64) {
	l, unit, ok = caps.LimitOf(key)
	return l, ok, unit
}

// limitTable reads [limits]. A limit is an integer, 0 or more; what is not is an
// error and never "no limit".
func (r *reader) limitTable(t *tomlfile.Table) {
	given := map[caps.Limit]string{}
	for i := range t.Entries {
		e := &t.Entries[i]
		l, ok, _ := limitOf(e.Key)
		if !ok {
			r.add(e.Pos, CodeUnknownKey, cmp.Or(foreignLimits()[e.Key], tomlfile.Nearest(e.Key, limitKeys()), "the limits are "+
				strings.Join(limitKeys(), ", ")), "unknown key %q in [limits]", e.Key)
			continue
		}
		if other, twice := given[l]; twice {
			r.add(e.Pos, CodeTwoSpellings, "keep one", "%s and %s are one limit", e.Key, other)
			continue
		}
		given[l] = e.Key
		if v, ok := r.limit(l, e); ok {
			r.limits = r.limits.Min(caps.Limits{}.With(l, v))
		}
	}
}

func (w *words) limit(l caps.Limit, e *tomlfile.Entry) (int64, bool) {
	v := &e.Value
	switch {
	case v.Kind == tomlfile.Integer:
		_, n, err := caps.ParseLimit(e.Key, v.Int)
		if err != nil {
			w.add(v.Pos, CodeBadLimit, "", "%v", err)
		}
		return n, err == nil
	case v.Kind == tomlfile.Float && l == caps.ModelUSD:
		return w.dollars(v)
	case v.Kind == tomlfile.Float:
		w.add(v.Pos, CodeWrongType, "write it without decimals", "limit %s must be an integer, not a decimal number", e.Key)
	default:
		w.add(v.Pos, CodeWrongType, "", "limit %s must be an integer, not %s", e.Key, v.Kind)
	}
	return 0, false
}

// dollars reads a decimal amount as millionths of a dollar. The comparison is
// written so that nan fails it.
func (w *words) dollars(v *tomlfile.Value) (int64, bool) {
	const most = 9e12
	if !(v.Float <= most) || math.Signbit(v.Float) {
		w.add(v.Pos, CodeBadLimit, "", "limit model_usd must be an amount from 0 to %.0f", float64(most))
		return 0, false
	}
	n := math.Round(v.Float * 1e6)
	if v.Float > 0 && n == 0 {
		w.add(v.Pos, CodeBadLimit, "write 0 for none at all", "limit model_usd is less than a millionth of a dollar")
		return 0, false
	}
	return int64(n), true
}
