package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"runloop.dev/rlp/internal/serve/service"
)

// mcpServe serves one client over stdin and stdout, which has nothing else on it,
// until stdin ends or ctx does. Whoever started this process is who asks.
func mcpServe(ctx context.Context, a *app) error {
	if isTerminal(a.stdin) && !a.quiet {
		a.say("this speaks MCP, a message a line, with a program at the other end; see rlp mcp --help")
	}
	s, closeAll, err := a.server(ctx, serveFlags{})
	if err != nil {
		return err
	}
	user := fmt.Sprintf("user:%d", os.Getuid())
	who := &service.Caller{
		ID: user, Name: user, Tenant: s.Home.Tenant(), May: service.Launch | service.Read | service.Operate,
	}
	return errors.Join(s.Speak(ctx, who, io.NopCloser(a.stdin), unclosed{a.stdout}), closeAll())
}

// unclosed is a writer that is not closed by who writes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
