package lane

func (b Bounds) orDefault() Bounds {
	if b.Memory == 0 {
		b.Memory = MaxData
	}
	if b.Pids == 0 {
		b.Pids = MaxProcesses
	}
	return b
}

// ownThreads are those of a confined rlp, and more.
const ownThreads = 16
