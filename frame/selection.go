package frame

// A Selection is where a frame to a group is sent: see switch.Selector.
type Selection struct {
	// Places are ports, and peers of tunnels. The Dest of a tunnel without a peer is its flood list. Both lists are sorted and
	// without duplicates; a place may be in both.
	Places [2][]Dest

	Tunnels bool // and to the flood list of each tunnel
	Taken   bool // the stage has used the frame: if it is sent nowhere it is not dropped
}

// Next removes the lowest place, from both lists, and returns it.
func (s *Selection) Next() (d Dest, ok bool) {
	for _, list := range s.Places {
		if len(list) > 0 && (!ok || list[0] < d) {
			d, ok = list[0], true
		}
	}
	for i, list := range s.Places {
		if len(list) > 0 && list[0] == d {
			s.Places[i] = list[1:]
		}
	}
	return d, ok
}
