package netns

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// A family is what differs between IPv4 and IPv6.
type family struct {
	proto    byte   // AF_INET or AF_INET6, which are nftables' words as well
	own      []byte // the address that connections come from
	at       uint32 // where a packet's destination is, in its header
	loopback []byte // what the loopback addresses begin with
	bits     int    // of it
}

// The addresses in [Resolver4] and [Resolver6] stand behind the own ones.
func families() [2]family {
	own4, own6 := Own4.As4(), Own6.As16()
	return [2]family{
		{unix.AF_INET, own4[:], 16, []byte{127, 0, 0, 0}, 8},
		{unix.AF_INET6, own6[:], 24, append(make([]byte, 15), 1), 128},
	}
}

// loopbackIndex is the number of the interface lo in every network namespace.
const loopbackIndex = 1

// up raises the loopback interface, which gives it its addresses.
func up() []message {
	body := []byte{unix.AF_UNSPEC, 0, 0, 0}
	body = binary.NativeEndian.AppendUint32(body, loopbackIndex)
	body = binary.NativeEndian.AppendUint32(body, unix.IFF_UP)
	body = binary.NativeEndian.AppendUint32(body, unix.IFF_UP)
	return []message{{unix.RTM_NEWLINK, unix.NLM_F_ACK, body}}
}

// everything makes every address of f the namespace's own: `ip address add OWN
// dev lo`, `ip route add local default dev lo table local src OWN`.
func (f *family) everything() []message {
	address := []byte{f.proto, byte(8 * len(f.own)), unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}
	address = binary.NativeEndian.AppendUint32(address, loopbackIndex)
	route := []byte{
		f.proto, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0,
	}
	out := binary.NativeEndian.AppendUint32(nil, loopbackIndex)
	return []message{
		{unix.RTM_NEWADDR, create, slices.Concat(address,
			attribute(unix.IFA_LOCAL, f.own), attribute(unix.IFA_ADDRESS, f.own))},
		{unix.RTM_NEWROUTE, create, slices.Concat(route,
			attribute(unix.RTA_OIF, out), attribute(unix.RTA_PREFSRC, f.own))},
	}
}

// A way is how connections are led to the listening sockets.
type way struct {
	name     string
	modules  string // of the kernel that it needs
	kind     string // of chain
	hook     uint32
	priority int32
	// leads are the expressions that lead a packet of f to a port.
	leads func(f *family, to uint16) [][]byte
}

// The attributes of the expression tproxy, which x/sys has no names for.
const (
	nftaTproxyFamily  = 1
	nftaTproxyRegPort = 3
)

// The priorities of chains: before routing decides, where connections are known
// again (mangle), and where destinations are translated (dstnat).
const (
	priorityMangle = -150
	priorityDstnat = -100
)

// transparent leads a connection to the listening socket as it is: the socket
// that accepts it has the address that was asked for.
func transparent() way {
	return way{
		name: "tproxy", modules: "nf_tables and nft_tproxy", kind: "filter",
		hook: unix.NF_INET_PRE_ROUTING, priority: priorityMangle,
		leads: func(f *family, to uint16) [][]byte {
			return [][]byte{
				port(unix.NFT_REG_2, to),
				expression("tproxy", number(nftaTproxyFamily, uint32(f.proto)), number(nftaTproxyRegPort, unix.NFT_REG_2)),
			}
		},
	}
}

// redirected translates the destination of a connection; the kernel remembers
// what it was.
func redirected() way {
	return way{
		name: "redirect", modules: "nf_tables, nft_chain_nat and nft_redir", kind: "nat",
		hook: unix.NF_INET_LOCAL_OUT, priority: priorityDstnat,
		leads: func(_ *family, to uint16) [][]byte {
			return [][]byte{
				port(unix.NFT_REG_2, to),
				expression("redir", number(unix.NFTA_REDIR_REG_PROTO_MIN, unix.NFT_REG_2)),
			}
		},
	}
}

const (
	tableName = "rlp"
	chainName = "connections"
)

// rules are the table, the chain and the rules of each family, as one transaction:
// each packet of TCP to an address that is neither loopback's nor the own one.
func (w way) rules(list []family) []message {
	priority := binary.BigEndian.AppendUint32(nil, uint32(w.priority))
	messages := []message{
		{unix.NFNL_MSG_BATCH_BEGIN, 0, head(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)},
		nft(unix.NFT_MSG_NEWTABLE, create, text(unix.NFTA_TABLE_NAME, tableName)),
		nft(unix.NFT_MSG_NEWCHAIN, create,
			text(unix.NFTA_CHAIN_TABLE, tableName), text(unix.NFTA_CHAIN_NAME, chainName),
			nested(unix.NFTA_CHAIN_HOOK, number(unix.NFTA_HOOK_HOOKNUM, w.hook),
				attribute(unix.NFTA_HOOK_PRIORITY, priority)),
			text(unix.NFTA_CHAIN_TYPE, w.kind)),
	}
	for i := range list {
		f := &list[i]
		messages = append(messages, nft(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK,
			text(unix.NFTA_RULE_TABLE, tableName), text(unix.NFTA_RULE_CHAIN, chainName),
			nested(unix.NFTA_RULE_EXPRESSIONS, slices.Concat(f.foreign(), w.leads(f, interceptPort))...)))
	}
	return append(messages, message{unix.NFNL_MSG_BATCH_END, 0, head(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)})
}

// foreign are the expressions that a packet of f, of TCP, to neither loopback nor the
// own address meets.
func (f *family) foreign() [][]byte {
	mask := make([]byte, len(f.own))
	for i := range f.bits {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	size := uint32(len(f.own))
	return [][]byte{
		meta(unix.NFT_META_L4PROTO), compare(unix.NFT_CMP_EQ, []byte{unix.IPPROTO_TCP}),
		meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, []byte{f.proto}),
		expression("payload", number(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1),
			number(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER),
			number(unix.NFTA_PAYLOAD_OFFSET, f.at), number(unix.NFTA_PAYLOAD_LEN, size)),
		compare(unix.NFT_CMP_NEQ, f.own),
		expression("bitwise", number(unix.NFTA_BITWISE_SREG, unix.NFT_REG_1),
			number(unix.NFTA_BITWISE_DREG, unix.NFT_REG_1), number(unix.NFTA_BITWISE_LEN, size),
			data(unix.NFTA_BITWISE_MASK, mask), data(unix.NFTA_BITWISE_XOR, make([]byte, size))),
		compare(unix.NFT_CMP_NEQ, f.loopback),
	}
}

// head is the header of messages of nftables and of its transactions.
func head(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}

func nft(kind, flags uint16, attributes ...[]byte) message {
	body := slices.Concat(append([][]byte{head(unix.NFPROTO_INET, 0)}, attributes...)...)
	return message{unix.NFNL_SUBSYS_NFTABLES<<8 | kind, flags, body}
}

func expression(name string, attributes ...[]byte) []byte {
	return nested(unix.NFTA_LIST_ELEM, text(unix.NFTA_EXPR_NAME, name), nested(unix.NFTA_EXPR_DATA, attributes...))
}

// data is an attribute with a value for a register.
func data(kind uint16, value []byte) []byte {
	return nested(kind, attribute(unix.NFTA_DATA_VALUE, value))
}

// meta loads what is known of a packet.
func meta(key uint32) []byte {
	return expression("meta", number(unix.NFTA_META_DREG, unix.NFT_REG_1), number(unix.NFTA_META_KEY, key))
}

// compare compares what was loaded last.
func compare(op uint32, value []byte) []byte {
	return expression("cmp", number(unix.NFTA_CMP_SREG, unix.NFT_REG_1), number(unix.NFTA_CMP_OP, op),
		data(unix.NFTA_CMP_DATA, value))
}

// port loads the port of the socket that packets are led to.
func port(register uint32, to uint16) []byte {
	return expression("immediate", number(unix.NFTA_IMMEDIATE_DREG, register),
		data(unix.NFTA_IMMEDIATE_DATA, binary.BigEndian.AppendUint16(nil, to)))
}
