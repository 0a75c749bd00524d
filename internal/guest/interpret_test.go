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
	m := &Module{cfg: cfg, shape: s, cache: openCache("", cfg.Module)}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	if m.compiled, err = m.runtime.CompileModule(ctx, metered); err != nil {
		return nil, err
	}
	return m, m.Link(ctx, cfg.Funcs)
}
