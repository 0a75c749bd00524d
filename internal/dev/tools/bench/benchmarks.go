package main

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
)

// benchmarks runs every suite once a round, all of them in each before the next.
func (b *bench) benchmarks(ctx context.Context) {
	b.say("building the benchmarks")
	all := b.suites()
	rounds := max(1, b.rounds/10)
	b.say("%d suites, %d rounds", len(all), rounds)
	for round := range rounds {
		for _, s := range all {
			b.turn(ctx, s, round)
		}
	}
	for _, s := range all {
		for _, key := range s.picks {
			if f := b.figures[key]; s.ours && !f.there() && f.Missing != "" && s.missing == "" {
				b.fails(key, errors.New(f.Missing))
			}
		}
	}
}

// turn runs one suite, and never again after it failed.
func (b *bench) turn(ctx context.Context, s *suite, round int) {
	if s.missing != "" || s.rounds > 0 && round >= s.rounds {
		return
	}
	err := s.run(ctx, b.figures)
	if err == nil {
		return
	}
	s.missing = err.Error()
	b.lost(s, err)
}

// lost notes that nothing of a suite can be measured.
func (b *bench) lost(s *suite, err error) {
	for _, key := range slices.Sorted(maps.Values(s.picks)) {
		if s.ours {
			b.fails(key, err)
		} else {
			b.lacks(key, err.Error())
		}
	}
}

// suites are the benchmarks of this project and those of others.
func (b *bench) suites() []*suite {
	var all []*suite
	for _, s := range b.sources() {
		made, err := b.testBinary(s)
		if err != nil {
			b.lost(&suite{picks: s.picks, ours: s.ours}, err)
			continue
		}
		all = append(all, made)
	}
	return append(all, b.scripts()...)
}

// scripts are the peers' own operations.
func (b *bench) scripts() []*suite {
	deno, node := b.deno(), b.node()
	script := filepath.Join(b.root, "internal", "dev", "tools", "bench", "js", "calls.js")
	picks := func(who string) map[string]string {
		return map[string]string{"Name ns/call": "call/" + who, "Stat ns/call": "stat/" + who}
	}
	env := append(b.env(""), "notes=notebook")
	inDeno := []string{deno.path, "run", "--no-prompt", "--allow-env=notes", "--allow-read=" + script, script, script}
	all := []*suite{
		{name: "deno", args: inDeno, env: env, missing: deno.missing, picks: picks("deno")},
		{
			name: "deno, audited", args: inDeno, missing: deno.missing, picks: picks("deno-audit"),
			env: append(env, "DENO_AUDIT_PERMISSIONS="+filepath.Join(b.tmp, "deno-audit")),
		},
		{
			name: "node", args: []string{node.path, "--permission", "--allow-fs-read=" + script, script, script}, env: env,
			missing: node.missing, picks: picks("node"),
		},
	}
	for _, s := range all {
		s.dir = b.tmp
		for _, key := range s.picks {
			if s.missing != "" {
				b.lacks(key, s.missing)
			}
		}
	}
	return all
}
