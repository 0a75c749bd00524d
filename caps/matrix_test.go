package caps_test

import (
	"testing"

	"runloop.dev/rlp/caps"
)

// TestMatrix has policies as rows and operations as columns: every policy
// answers every operation, + for allowed and a reason's initial otherwise.
//
//rlp:holds R20 R27 C7
func TestMatrix(t *testing.T) {
	columns := []string{
		"fs:read:/data/a", "fs:write:/data/a", "fs:delete:/data/a", "fs:read:/database",
		"network:https:get@api.x.org", "network:https:post@api.x.org", "network:http:get@api.x.org",
		"network:https:get@api.x.org:8443", "network:tcp:api.x.org:443",
		"time:read:*", "kb:read:contacts", "kb:read:contacts_raw", "kb:write:contacts",
		"secrets:get:runloop/a/b", "secrets:use:runloop/a/b@api.x.org", "secrets:use:runloop/a/b@y.org",
		"secrets:use:runloop/a/b",
		"model:use:openai:o3", "process:exec:/bin/ls", "env:read:PATH", "mcp:call:github", "agents:launch:critic",
	}
	marks := map[caps.Code]byte{
		caps.Granted: '+', caps.CapMissing: '-', caps.PathNotPermitted: 'p', caps.HostNotPermitted: 'h',
		caps.HTTPNotPermitted:   's',
		caps.MethodNotPermitted: 'm', caps.DomainNotPermitted: 'd', caps.SecretNotPermitted: 'k', caps.ModelNotPermitted: 'l',
		caps.ProgramNotPermitted: 'x', caps.ServerNotPermitted: 'v', caps.AgentNotPermitted: 'a',
	}
	for _, row := range []struct {
		policy []string
		want   string
	}{
		{nil, "----------------------"},
		{[]string{"fs:read:/data"}, "+ppp------------------"},
		{[]string{"fs:write:/data"}, "p+pp------------------"},
		{[]string{"fs:read:*", "fs:delete:*"}, "+p++------------------"},
		{[]string{"net:api.x.org"}, "----++shh-------------"},
		{[]string{"network:https:get@api.x.org"}, "----+mshh-------------"},
		{[]string{"network:http:api.x.org"}, "----hh+hh-------------"},
		{[]string{"network:http:post@api.x.org"}, "----hhmhh-------------"},
		{[]string{"net:api.x.org:8443"}, "----hhh+h-------------"},
		{[]string{"network:https:*"}, "----++s+h-------------"},
		{[]string{"network:https:*.x.org"}, "----++shh-------------"},
		{[]string{"network:https:*.api.x.org"}, "----hhhhh-------------"},
		{[]string{"network:tcp:api.x.org:443"}, "----hhhh+-------------"},
		{[]string{"network:tcp:api.x.org:5432"}, "----hhhhh-------------"},
		{[]string{"network:tcp:api.x.org:443", "net:api.x.org"}, "----++sh+-------------"},
		{[]string{"time:read:*"}, "---------+------------"},
		{[]string{"kb:read:*"}, "----------+d----------"},
		{[]string{"kb:read:contacts_raw"}, "----------d+----------"},
		{[]string{"kb:read:events"}, "----------dd----------"},
		{[]string{"kb:write:contacts"}, "------------+---------"},
		{[]string{"secrets:read:runloop/a/b"}, "-------------++++-----"},
		{[]string{"secrets:read:runloop/a/b@api.x.org"}, "-------------++kk-----"},
		{[]string{"secrets:read:runloop/a/b@*.x.org"}, "-------------++kk-----"},
		{[]string{"secrets:get:runloop/a/b"}, "-------------+kkk-----"},
		{[]string{"secrets:read:runloop/a/c"}, "-------------kkkk-----"},
		{[]string{"model:use:openai:*"}, "-----------------+----"},
		{[]string{"model:use:local:*"}, "-----------------l----"},
		{[]string{"process:exec:/bin/ls"}, "------------------+---"},
		{[]string{"process:exec:/bin/sh"}, "------------------x---"},
		{[]string{"env:read:HOME"}, "-------------------n--"},
		{[]string{"env:read:PATH"}, "-------------------+--"},
		{[]string{"mcp:call:gitlab"}, "--------------------v-"},
		{[]string{"agents:launch:*"}, "---------------------+"},
		{[]string{"agents:launch:writer"}, "---------------------a"},
	} {
		if len(row.want) != len(columns) {
			t.Fatalf("%v answers %d of %d operations", row.policy, len(row.want), len(columns))
		}
		s := set(t, row.policy...)
		for i, asked := range columns {
			r, err := caps.ParseRequest(asked)
			if err != nil || len(r) != 1 {
				t.Fatalf("%s: %v, %v", asked, r, err)
			}
			d := s.Check(r[0])
			want := row.want[i]
			if want == 'n' {
				want = '-' // env has no reason of its own
			}
			if marks[d.Code] != want || d.Allow != (want == '+') {
				t.Errorf("%v, %s: %+v (%v), want %c", row.policy, asked, d, d.Code, want)
			}
		}
	}
}
