package egress

// AgentsMark is the type of service of what rlp sends to addresses of this host for
// agents. Such a connection is of the operator's user, as the kernel sees it; a service
// that knows its peers by that asks the kernel for the mark, too.
const AgentsMark = 0xb4
