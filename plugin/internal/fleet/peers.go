package fleet

// Standing is what is known of the process that made a server.
type Standing int

const (
	// Ours is a server of this process, or of one that had ended when this one
	// began.
	Ours Standing = iota
	// Others is a server of another process that lives, or may: its jobs go on.
	Others
	// Left is a server of a process that has ended since this one began, and whose
	// jobs have ended with it.
	Left
)

// Peer is the process that made a server.
type Peer struct {
	Standing Standing
	// Name says who it is, for people.
	Name string
	// Expected is set where two processes serve a group for a while, as they do
	// when the host replaces one by the other.
	Expected bool
}

// Peers knows the other processes that may serve a group. A group calls it with
// its lock held.
type Peers interface {
	// Of returns the process that made a server with the group's owner mark.
	Of(s Server) Peer
}

// alone is a group that no other process serves.
type alone struct{}

func (alone) Of(Server) Peer { return Peer{} }

// belongs reports whether a listed server with the group's name and owner mark is
// this process's to report and to delete. Those of other processes are counted,
// and named once.
func (g *Group) belongs(s Server, peers, told map[string]bool) bool {
	peer := g.settings.Peers.Of(s)
	switch peer.Standing {
	case Others:
		peers[s.ID] = true
		if !told[peer.Name] && !g.toldPeers[peer.Name] {
			g.tellPeer(peer, s)
		}
		told[peer.Name] = true
		return false
	case Left:
		if g.condemnStray(s) {
			g.log.Warn("deleting a server that a process left which has ended", "process", peer.Name, "server", s.Name, "id", s.ID)
		}
		return false
	case Ours:
	}
	return true
}

func (g *Group) tellPeer(peer Peer, s Server) {
	if peer.Expected {
		g.log.Info("another process of this runner serves the group, too; leaving its servers to it", "process", peer.Name)
		return
	}
	g.log.Error("another process makes servers in this group; leaving them alone: give each [[runners]] entry a group of its own",
		"process", peer.Name, "server", s.Name, "id", s.ID)
}

// knows reports whether a listed server is this process's by its ID: while Nova
// deletes a server it may show it without its metadata.
func (g *Group) knows(s Server) bool {
	if inst, known := g.instances[s.Name]; known && inst.id == s.ID {
		return true
	}
	return s.ID != "" && g.tombstones[s.Name].id == s.ID
}
