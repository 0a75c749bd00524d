package host

import (
	"context"
	"errors"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// tokenLayers reads what a token narrows.
func (h *Host) TokenLayers(_ context.Context, t *access.Token) ([]*caps.Layer, error) {
	a := h.as(t.Tenant, nil)
	c := &compose.Composition{}
	if err := a.Settle(c); err != nil {
		return nil, err
	}
	var layers []*caps.Layer
	for _, name := range t.Profiles {
		p, err := a.Profile(c, name)
		if err != nil {
			return nil, err
		}
		layer := *p.Layer
		layer.Name = t.Caller()
		layers = append(layers, &layer)
	}
	if t.Grant == "" {
		return layers, nil
	}
	o, findings := policy.ParseLayer(t.Caller(), t.Caller(), []byte(t.Grant), a.Options(c.Home, c.Config))
	if err := policy.AsError(findings); err != nil {
		return nil, &compose.Error{Status: launcher.StatusInput, Err: err}
	}
	if len(o.Params) > 0 {
		return nil, &compose.Error{
			Status: launcher.StatusInput,
			Err:    errors.New("[params] in the grant of a token fill in nothing; take them out"),
		}
	}
	return append(layers, o.Layer), nil
}
