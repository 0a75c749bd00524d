package export

import (
	"net/url"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/record/audit"
)

// conventions adds what OpenTelemetry's conventions call the things that a
// record holds, so that tools which know nothing of rlp show them. The names of
// gen_ai.* are those of its conventions for generative AI, which are still in
// development; rlp.* beside them are ours and stay.
func (s *span) conventions(d *audit.DecisionRecord) {
	switch d.Cap {
	case "model.use":
		s.model(d)
	case "mcp.call":
		if _, tool, ok := strings.Cut(d.Target, "/"); ok {
			s.name = "execute_tool " + validText(tool)
			s.add("gen_ai.operation.name", "execute_tool")
			s.add("gen_ai.tool.name", tool)
		}
	case "agent.launch":
		s.add("gen_ai.operation.name", "invoke_agent")
		s.add("gen_ai.agent.name", d.Target)
	case "net.http":
		s.kind = kindClient
		s.add("url.full", d.Target)
		if u, err := url.Parse(d.Target); err == nil {
			s.add("server.address", u.Hostname())
			if port, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
				s.add("server.port", port)
			}
		}
	case "exec.spawn":
		s.add("process.executable.path", d.Target)
	}
}

// model is a call of a model. How many tokens it took is in no record.
func (s *span) model(d *audit.DecisionRecord) {
	operation := "chat"
	if d.Op == "model_embed" {
		operation = "embeddings"
	}
	provider, name := modelOf(d.Target)
	s.name = strings.TrimSpace(operation + " " + validText(name))
	if provider != "local" {
		s.kind = kindClient
	}
	s.add("gen_ai.operation.name", operation)
	s.add("gen_ai.provider.name", provider)
	s.add("gen_ai.request.model", name)
}
