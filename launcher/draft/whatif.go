package draft

import (
	"context"
	"errors"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// WhatIf decides recorded runs again under what the flags say; text is the override
// of the name -.
func (d Recorded) WhatIf(
	ctx context.Context, filter kb.Filter, f compose.Flags, text []byte,
) (*ask.Forecast, error) {
	h, cfg, err := d.Reader.Settings()
	if err != nil {
		return nil, err
	}
	with := *d.Reader
	with.Drafts = map[string][]byte{"-": text}
	if err := NotTooLong(text); err != nil {
		return nil, err
	}
	layers, err := candidates(&with, h, cfg, f)
	if err != nil {
		return nil, ofDraft("-", err)
	}
	found, err := ask.WhatIf(ctx, d.Store, filter, ask.Candidates{
		Layers: layers, Domains: append(policy.BuiltinDomains(), cfg.KB.Domains...),
		Programs: (&compose.Composition{Home: h, Config: cfg}).CanonicalProgram,
	})
	if err != nil {
		return nil, ofDraft("-", err)
	}
	return found, nil
}

// candidates are the layers that are tried.
func candidates(r *compose.Reader, h home.Home, cfg config.Config, f compose.Flags) ([]*caps.Layer, error) {
	c := &compose.Composition{Home: h, Config: cfg}
	if err := compose.Own(h, f.Overrides...); err != nil {
		return nil, err
	}
	var layers []*caps.Layer
	for _, path := range f.Overrides {
		l, err := r.OverrideLayer(c, path, false, &policy.Given{Values: map[string]policy.Value{}})
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	for _, name := range f.Profiles {
		p, err := r.Profile(c, name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, p.Layer)
	}
	if len(f.Allow)+len(f.Deny)+len(f.Limits) > 0 {
		l, err := compose.CallerLayer(f, append(policy.BuiltinDomains(), cfg.KB.Domains...))
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	if len(layers) == 0 {
		return nil, &compose.Error{Status: run.StatusUsage, Err: errors.New("whatif needs a policy to try: --override FILE, " +
			"--profile NAME, --allow, --deny or --limit")}
	}
	return layers, nil
}
