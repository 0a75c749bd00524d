package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/compose"
)

// agentTools serves the agents of callers as tools.
func agentTools(s *service.Service, h mcpserver.Host, log *slog.Logger) *mcpserver.Server {
	return mcpserver.New(mcpserver.Options{Service: s, Host: h, Version: version, Now: time.Now, Log: log})
}

// mcpServe serves one client over stdin and stdout, which has nothing else on it,
// until stdin ends or ctx does. Whoever started this process is who asks.
func (a *app) mcpServe(ctx context.Context) (err error) {
	if isTerminal(a.stdin) && !a.quiet {
		fmt.Fprintln(a.stderr, "rlp: this speaks MCP, a message a line, with a program at the other end; see rlp mcp --help")
	}
	s := &server{app: a}
	if s.at, s.config, err = a.settings(); err != nil {
		return err
	}
	logFile, err := s.openLog()
	if err != nil {
		return err
	}
	defer logFile.Close()
	a.kept = compose.NewKept(ctx, memoryForRuns(), a.stderr)
	s.host = host.New(a.runner(), s.at.Dir(), s.log, time.Now)
	s.boundMemory()
	defer func() { err = errors.Join(err, a.closeKept()) }()
	if err := s.host.Decided(); err != nil {
		return err
	}
	runs := service.New(service.Options{
		Host: s.host, Workers: s.workers(), Queue: int(s.config.Serve.Queue), Now: time.Now, Log: s.log,
	})
	user := fmt.Sprintf("user:%d", os.Getuid())
	who := &service.Caller{
		ID: user, Name: user, Tenant: s.at.Tenant(), May: service.Launch | service.Read | service.Operate,
	}
	tools := agentTools(runs, host.Questions{Host: s.host}, s.log)
	defer tools.Close()
	s.log.Info("serving", "addresses", []string{"stdio"}, "tenant", who.Tenant, "version", version)
	served := tools.Serve(ctx, who, io.NopCloser(a.stdin), unclosed{a.stdout})
	ended := runs.Drain(context.WithoutCancel(ctx)) // there is no grace: nobody is left to take an answer
	if ctx.Err() != nil {
		served = nil // ended as it was told to
	}
	if served != nil {
		served = inputErr(fmt.Errorf("the client does not speak MCP: %w", served))
	}
	return errors.Join(served, ended)
}

// unclosed is a writer that is not closed by who writes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
