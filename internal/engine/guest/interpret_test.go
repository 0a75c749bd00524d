package guest

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Interpret is [Compile] for the engine's interpreter: the same module, run by
// something that shares nothing with native code.
func Interpret(ctx context.Context, cfg Config) (*Module, error) {
	s, err := scan(cfg.Module)
	if err != nil {
		return nil, err
	}
	metered, err := s.metered(cfg.Module)
	if err != nil {
		return nil, err
	}
	funcs, err := link(s.imports, cfg.Funcs)
	if err != nil {
		return nil, err
	}
	c := &code{imports: s.imports, minPages: s.minPages, cache: openCache("", &cfg)}
	c.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	if c.compiled, err = c.runtime.CompileModule(ctx, metered); err != nil {
		return nil, err
	}
	if err := c.export(ctx, funcs); err != nil {
		return nil, err
	}
	m := cfg.module(c, false, c.close)
	return m, m.Link(ctx, cfg.Funcs)
}
