// Package mcpserver offers the agents of a tenant as tools of the Model Context
// Protocol, and what happened to them as tools that only read.
//
// A session asks for one caller, who was proved elsewhere; nothing that a client
// says makes it another's, names a tenant, or widens anything. A call of an agent
// is a request of the service through the door [service.MCP], merged, gated and
// recorded as every launch is. What an agent says of itself, its description and
// the schema of its input, is a stranger's text: it is bounded, and a schema that
// is not understood is replaced by one that takes any object.
//
// The package launches nothing, opens nothing, and knows no protocol but by the
// SDK.
package mcpserver
