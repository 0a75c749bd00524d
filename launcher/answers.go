package launcher

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
	"runloop.dev/rlp/launcher/lint"
)

type (
	// A Finding is one mistake in a file, with its position and severity.
	Finding = policy.Finding
	// A Risk is one dangerous thing that a home or its agents allow.
	Risk = analysis.Finding
	// A Filter says which records are asked for; the zero Filter is for all.
	Filter = auditlog.Filter
	// A Forecast says which recorded calls another policy would block.
	Forecast = ask.Forecast
	// A Suggestion is the least policy for what recorded runs did.
	Suggestion = ask.Suggestion
	// A Verification says whether the log is what was recorded, and what is wrong.
	Verification = ask.Verification
)

// Lint finds mistakes in bundles, policies, manifests and overrides, by their paths.
// The error says that a path cannot be read.
func (l *Launcher) Lint(paths ...string) ([]Finding, error) {
	r, err := lint.Files(l.runner.Reader, lint.Query{Paths: paths, Self: l.runner.Self})
	if err != nil {
		return nil, err
	}
	return r.Findings, nil
}

// Scan finds what is dangerous in the home ("home"), in the installed agents
// ("installed") and in bundles (their paths); without arguments, in the first two.
func (l *Launcher) Scan(what ...string) ([]Risk, error) { return lint.Scan(l.runner.Reader, what) }

// Audit reads records of the tenant's log, oldest first. An error is the last pair.
func (l *Launcher) Audit(ctx context.Context, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		more := true
		err := auditlog.With(ctx, l.runner.Reader, f, time.Now(), func(ctx context.Context, s *kb.Store, of kb.Filter) error {
			for r, err := range s.Audit(ctx, of) {
				if err != nil {
					return err
				}
				if more = yield(r, nil); !more {
					break
				}
			}
			return nil
		})
		if err != nil && more {
			yield(Record{}, err)
		}
	}
}

// Verify checks the tenant's log, its tree and its checkpoints.
func (l *Launcher) Verify(ctx context.Context) (*Verification, error) {
	return auditlog.Verify(ctx, l.runner.Reader, auditlog.Check{})
}

// WhatIf decides recorded runs again under what q takes away: its Overrides,
// Profiles, Allow, Deny and Limits. The rest of q is not looked at.
func (l *Launcher) WhatIf(ctx context.Context, f Filter, q Request) (forecast *Forecast, err error) {
	err = auditlog.With(ctx, l.runner.Reader, f, time.Now(), func(ctx context.Context, s *kb.Store, of kb.Filter) error {
		forecast, err = draft.Recorded{Reader: l.runner.Reader, Store: s}.WhatIf(ctx, of, q.flags(), nil)
		return err
	})
	return forecast, err
}

// Suggest makes the least policy of what runs used: those of a bundle, by its path,
// or single ones, by their ids. With override, it is an operator's override.
func (l *Launcher) Suggest(ctx context.Context, override bool, of ...string) (made *Suggestion, err error) {
	err = auditlog.With(ctx, l.runner.Reader, Filter{}, time.Now(), func(ctx context.Context, s *kb.Store,
		_ kb.Filter,
	) error {
		made, err = draft.Recorded{Reader: l.runner.Reader, Store: s}.SuggestOf(ctx, of, ask.Wanted{Override: override})
		return err
	})
	return made, err
}

// flags are what q says, as flags of a command say it.
func (q *Request) flags() compose.Flags {
	f := compose.Flags{
		Overrides: q.Overrides, Profiles: q.Profiles, Allow: q.Allow, Deny: q.Deny,
		Bare: compose.BaseOfModule, Base: q.Base,
	}
	for _, key := range slices.Sorted(maps.Keys(q.Limits)) {
		f.Limits = append(f.Limits, fmt.Sprintf("%s=%d", key, q.Limits[key]))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Params)) {
		f.Params = append(f.Params, name+"="+q.Params[name])
	}
	return f
}
