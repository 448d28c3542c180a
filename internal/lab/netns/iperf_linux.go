package netns

import "slices"

// IPerf runs iperf3 from the host to a server at addr, which it starts on another host. The args are those of the
// client, such as "-u" or "-R"; without "-t", "-n" or "-k" it runs for a second. If iperf3 fails, so does the test.
func (h *Host) IPerf(server *Host, addr string, args ...string) Throughput {
	h.t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return a == "-t" || a == "-n" || a == "-k" }) {
		args = append([]string{"-t", "1"}, args...)
	}
	s := server.Start("iperf3", "-s", "-1", "--forceflush")
	s.Want("Server listening")
	// Standard output only: iperf3 warns on the other.
	out := h.Run("sh", append([]string{"-c", `exec iperf3 "$@" 2>/dev/null`, "iperf3", "-J", "-c", addr}, args...)...)
	r, err := ReadIPerf([]byte(out))
	if err != nil {
		h.t.Fatalf("lab: host %s: iperf3 -c %s: %v\n%s", h.Name, addr, err, out)
	}
	if err := s.Wait(); err != nil {
		h.t.Fatalf("lab: host %s: iperf3 -s: %v\n%s", server.Name, err, s.Output())
	}
	return r
}
