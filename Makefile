# make test is everything CI runs. On a bare Debian machine with Go it installs what
# is missing, as root; as an ordinary user it says what is missing, and the tests
# that need root skip.

GO          ?= go
FUZZTIME    ?=
FUZZCAP     ?= 150
BENCHTIME   ?= 500ms
SOAKTIME    ?= 5m
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM   ?= gotest.tools/gotestsum@v1.13.0

# Modules of their own, which ./... does not reach. go.work lists them too, so that ./examples/... is reached from here.
MODULES = bgp calico calico/kube cmd discovery evpn evpn/bench evpn/internal/oracle examples flannel flannel/kube hostnet metrics offload ovsdb release

# So that clones of the same files share the compiler's cache.
export GOFLAGS += -trimpath

# command:package
TOOLS = gcc:gcc ip:iproute2 bridge:iproute2 iperf3:iperf3 ping:iputils-ping arping:iputils-arping \
	ndisc6:ndisc6 ethtool:ethtool tcpdump:tcpdump tshark:tshark traceroute:traceroute ovs-vswitchd:openvswitch-switch vtep-ctl:openvswitch-vtep \
	ovn-northd:ovn-central ovn-controller:ovn-host ovn-controller-vtep:ovn-controller-vtep \
	qemu-system-x86_64:qemu-system-x86 busybox:busybox-static zstd:zstd nft:nftables \
	wg:wireguard-tools wireguard-go:wireguard-go smcrouted:smcroute \
	mmdebstrap:mmdebstrap git:git bird:bird2 vtysh:frr gobgpd:gobgpd systemd-analyze:systemd setpriv:util-linux curl:curl groff:groff-base zsh:zsh fish:fish \
	etcd:etcd-server etcdctl:etcd-client iptables:iptables

# A kernel for the guests of internal/lab/qemu; one that is there will do. Its package wants
# a maker of initramfs: the smallest, if there is none.
KERNEL = linux-image-cloud-amd64

# Packages whose tests take longest, those first: go test begins in the order it is told, and at the end nobody
# waits for one of them alone. Many tests wait for a program or a timer, so more run at once than there are processors.
WIDE = -p $$(($$(nproc) * 3 / 2))
LONG = ./ovsdb ./bgp ./node ./internal/lab/kernel ./cmd/vxswitchd ./evpn ./offload/internal/datapath ./offload ./flannel/daemon ./port $\
	./ovsdb/internal/server ./discovery/internal/state ./flannel/routed ./flannel ./flannel/etcd ./cmd/vxswitch-cni ./underlay ./underlay/afpacket
ALL = $(LONG) ./... $(patsubst %,./%/...,$(filter-out release,$(MODULES)))

# Tests of internal/lab/kernel that compare packet after packet with the kernel.
ALONE = ^Test(Receive|ReceiveECN|ReceiveStrict|ReceiveReserved|ReceiveGPE|ReceiveGBP|ReceiveOuter|Reservable|SendSettings|SendTTL|SendGBP|SourcePort|Shapes|DeviceMTU)$$

# Tests of one goroutine that are long under the race detector, which has nothing to find there.
SINGLE = ^Test(WorstMACs|WorstResources|WorstTable|WorstScan|WorstFlows|Memory|WaitCost|Sizes|Faults|HandleSuffices|PlaneModel|Ledger|$\
	ManyElements|ParseHostile|Hostile|ApplyFailsAtEveryStep|ApplyFaults|ConstructorFaults|CheckRefusesWhatApplyDoes|SchemaKeys|SchemaRefuses|Drawn)$$

.PHONY: bpf test quick tools vet check cross unit race run carried needless fuzz worst bench compare flows tunnels underlays growth soak bgp-bench discovery-bench evpn-bench flannel-bench release

# Two jobs side by side: while tests wait for programs and timers, others compile.
test: tools
	@rm -f .again.*
	@$(MAKE) -j2 race unit check cross run fuzz && $(MAKE) carried; s=$$?; \
	cat .again.* 2>/dev/null | sed 's/^/run again: /'; rm -f .again.*; [ $$s != 0 ] || echo "all passed"; exit $$s

# go test for packages whose tests wait for programs and networks, on a machine that others use too. Tests that fail are run
# again, once, after all others, and named at the end. A data race, a test that fails twice, or more than ten are final. What go test
# would vet, check does.
LIVE = $(GO) run $(GOTESTSUM) -f standard-quiet --hide-summary=skipped --rerun-fails=1 --rerun-fails-max-failures=10 \
	--rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report=$(CURDIR)/.again.$@.$1 --packages="$2" -- -vet=off

# For every commit, under three minutes: the tests that need no network namespaces, those of the core with the
# race detector too.
CORE = ./arp ./bfd ./control ./encap ./fdb ./frame ./l3 ./policy ./snoop ./switch ./underlay/memory ./vtep
quick: vet
	$(GO) test -short ./...
	set -e; for m in $(MODULES); do $(GO) test -C $$m -short ./...; done
	$(GO) test -race -short -skip '$(SINGLE)' $(CORE)

tools:
	@need=; for t in $(TOOLS); do \
		command -v $${t%%:*} >/dev/null || need="$$need $${t##*:}"; done; \
	[ -e /usr/include/stdlib.h ] || need="$$need libc6-dev"; \
	[ "$$(uname -m)" != x86_64 ] || ls /boot/vmlinuz-* >/dev/null 2>&1 || { need="$$need $(KERNEL)"; \
		command -v update-initramfs >/dev/null || command -v dracut >/dev/null || need="$$need tiny-initramfs"; }; \
	if [ -n "$$need" ]; then \
		if [ "$$(id -u)" = 0 ]; then \
			echo "installing$$need"; \
			(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$need) >/dev/null && \
			for s in openvswitch-switch bird frr etcd; do \
				case "$$need" in *$$s*) /etc/init.d/$$s stop >/dev/null;; esac; done; \
		else echo "missing:$$need (some tests will skip)"; fi; fi

vet:
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "not gofmt-ed: $$out"; exit 1; }
	$(GO) vet ./... ./examples/...

check: vet
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff
	set -e; for m in $(MODULES); do $(GO) vet -C $$m ./...; $(GO) run -C $$m $(STATICCHECK) ./...; $(GO) mod -C $$m tidy -diff; done

# The types of all of it, tests and examples included, are right on the systems of the portable underlay, and on 386, which has another
# int. Who makes a release has Linux, and so has a node of Kubernetes. A compiler goes over arm64.
ELSEWHERE = ./... $(patsubst %,./%/...,$(filter-out release calico/kube flannel/kube,$(MODULES)))
cross:
	$(GO) run -C release ./portable -C .. windows/amd64,darwin/arm64,freebsd/amd64,linux/386 $(ELSEWHERE)
	$(GO) run -C release ./portable -C .. openbsd/amd64,netbsd/amd64,dragonfly/amd64 ./underlay
	GOARCH=arm64 $(GO) build ./... ./examples/...

# Every test runs under the race detector, but for those with nothing in them for it: what only measures, boots guests, pastes pages
# or starts programs, those that only ever have one packet or one goroutine, and of p2p those that start it as a program.
APART = /bench|/internal/lab/(docs|qemu|vectors)$$|/examples/p2p$$
race: export GORACE = suppressions=$(CURDIR)/internal/lab/gobgp/races.txt
race:
	$(call LIVE,1,$$($(GO) list $(ALL) | grep -vE '$(APART)')) $(WIDE) -race -shuffle=on -timeout 40m -skip '$(ALONE)|$(SINGLE)'
	$(GO) test -race -shuffle=on -timeout 40m -run 'InProcess|Stats|Values|Defaults|Help|Errors|Refusals|NoPermission' ./examples/p2p

# Those run here, without it, and so do the tests of files that count allocations, which are exact only here, or that ask for the
# race detector.
EXACT  = grep -rlE 'go:build .*race|AllocsPerRun|mallocs\(|fake\.Race|raceEnabled' --include='*_test.go' .
PLAIN  = $(ALONE)|$(SINGLE)|^($$($(EXACT) | xargs grep -hoE '^func Test[A-Za-z0-9_]+' | cut -c6- | sort -u | paste -sd'|'))$$
HAVE   = grep -rlE 'func ($(subst ^,,$(subst $$,,$(ALONE)|$(SINGLE))))\(' --include='*_test.go' .
WHOLE  = ./examples/p2p $$($(GO) list $(ALL) | grep -E '$(APART)') ./release/...
PARTLY = $$({ $(EXACT); $(HAVE); } | xargs -n1 dirname | grep -v '^./bench' | sort -u)
unit:
	@[ -n "$$($(EXACT))" ]
	$(call LIVE,1,$(WHOLE)) $(WIDE) -shuffle=on -timeout 40m
	$(call LIVE,2,$(PARTLY)) $(WIDE) -timeout 40m -run "$(PLAIN)"

run:
	$(GO) run ./examples/quickstart >/dev/null

# Suites again, with flows carried in the kernel: internal/lab/carry has the list. So that two pings are enough for a flow,
# its first frame is hinted. needless runs what is left out, which must fail or carry nothing.
CARRIED = ./internal/lab/chaos ./internal/lab/kernel ./node ./examples/p2p
carried: DATAPATH = kernel
needless: DATAPATH = needless
carried needless:
	@mkdir -p .carry && sed 's/^const hintAt = 8$$/const hintAt = 1/' switch/flow.go >.carry/flow.go && ! cmp -s switch/flow.go .carry/flow.go
	@printf '{"Replace": {"%s": "%s", "%s": "%s"}}\n' $(CURDIR)/switch/flow.go $(CURDIR)/.carry/flow.go \
		$(CURDIR)/internal/lab/carry/open.go $(CURDIR)/internal/lab/carry/testdata/open.txt >.carry/overlay.json
	DATAPATH=$(DATAPATH) GOFLAGS="$$GOFLAGS -overlay=$(CURDIR)/.carry/overlay.json" $(call LIVE,1,$(CARRIED)) $(WIDE) -count=1 -timeout 20m
	@rm -r .carry

# Every fuzz target for a moment, with a number of inputs that goes by what one costs: two
# minutes in all. After FUZZCAP seconds, on a machine that is busy or has to compile everything
# first, the rest get little more than their seeds. For a hunt of an hour: make fuzz
# FUZZTIME=80s, the time for each target. With a time, go test now and then fails a target that is
# being stopped ("context deadline exceeded", seen with Go 1.26): without an input, that is none.
# Inputs of workers that run at once are never quite the same twice, so few tries go into making
# them smaller.
fuzz:
	@set -e; for m in . $(MODULES); do $(GO) test -C $$m -list '^Fuzz' ./... | \
		awk -v m=$$m '/^Fuzz/ {t[++n]=$$1} /^ok/ {for(i=1;i<=n;i++) print m, $$2, t[i]; n=0}'; done >.fuzz.list; \
	[ -s .fuzz.list ]; end=$$(($$(date +%s) + $(FUZZCAP))); while read -r m pkg target; do \
		case $$target in \
		FuzzFabric) n=1000x;; FuzzSwitch|FuzzMapper|FuzzCompile) n=3000x;; \
		FuzzPlane|FuzzTable|FuzzPolicy|FuzzRoutes|FuzzRequest|FuzzCutOracle) n=6000x;; \
		*) n=20000x;; esac; \
		[ $$(date +%s) -lt $$end ] || n=200x; \
		$(GO) test -C $$m $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),$$n) -fuzzminimizetime 20x >.fuzz.log 2>&1 || \
			{ grep -q 'context deadline exceeded' .fuzz.log && ! grep -q 'Failing input' .fuzz.log; } || { cat .fuzz.log; exit 1; }; \
		echo "$$pkg $$target: $$(grep '^fuzz: elapsed.*execs' .fuzz.log | tail -1)"; \
	done <.fuzz.list; rm -f .fuzz.list .fuzz.log

# What others keep of each table that strangers fill, while one does his worst: SECURITY.md has the list.
WORST = ./arp ./capture ./fdb ./internal/lab/worst ./internal/pending ./l3 ./policy ./port ./snoop ./switch ./underlay/afpacket ./underlay/memory ./vtep
worst:
	@{ $(GO) test -count=1 -v -run '^Test(Worst|Fields$$|Rows$$|Documentation$$)' $(WORST) && \
		$(GO) test -C cmd -count=1 -v -run '^TestWorst' ./vxswitchd && $(GO) test -C offload -count=1 -v -run '^TestWorst' . && $(GO) test -C flannel -count=1 -v -run '^TestWorst' . && $(GO) test -C evpn -count=1 -v -run '^TestWorst' ./internal/bgp ./internal/table && $(GO) test -C bgp -count=1 -v -run '^TestWorst' . && $(GO) test -C calico -count=1 -v -run '^TestWorst' ./internal/model && $(GO) test -C ovsdb -count=1 -v -run '^TestWorst' ./internal/server; } >.worst.log || { grep -v '^===' .worst.log; rm -f .worst.log; exit 1; }
	@sed -n 's/.*worst: //p' .worst.log; rm -f .worst.log

# Six passes over everything, so that what is compared takes turns; a quarter of an hour on an
# otherwise idle machine. The summary is medians and their spread.
bench:
	@rm -f .bench.log; for pass in 1 2 3 4 5 6; do echo "pass $$pass of 6"; \
		$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) ./bench ./fdb ./internal/gso ./internal/wire ./policy ./underlay ./underlay/memory >>.bench.log || { tail .bench.log; exit 1; }; done
	@$(GO) run golang.org/x/perf/cmd/benchstat@latest .bench.log >bench/results/benchmarks.txt; rm -f .bench.log

# Whole tunnels beside the kernel's vxlan, as root; 35 minutes on a
# machine that does nothing else.
compare:
	@$(GO) run ./bench/compare -json bench/results/compare.json -svg bench/results/compare.svg -bars docs/compare.svg >.compare.txt; s=$$?; \
	if [ -s .compare.txt ]; then mv .compare.txt bench/results/compare.txt; else rm -f .compare.txt; fi; exit $$s

# Parts of compare, in five, five and fifteen minutes: flows in the kernel; the other encapsulations beside VXLAN, IP-in-IP with
# and without batches; packet sockets and the portable underlay beside UDP sockets.
flows: CASES = tcp1,tcp4,tcp1-off,udp64,rr,pairs -contender kernel,vxswitch-flows,kernel-flows,flows-kernel,flows-one,flows-many -rounds 5
tunnels: CASES = gpe-tcp1,gpe-udp64,tun-tcp1,tun-udp64,ipip-tcp1,ipip-udp64
underlays: CASES = portable-tcp1,portable-udp64,packet-tcp1,packet-tcp4,packet-tcp1-off,packet-udp64,packet-udp1400,packet-rr,packet-idle,packet-ports -rounds 7 -seconds 4
flows tunnels underlays:
	@$(GO) run ./bench/compare -case $(CASES) -json bench/results/$@.json -svg bench/results/$@.svg >.$@.txt; s=$$?; \
	if [ -s .$@.txt ]; then mv .$@.txt bench/results/$@.txt; else rm -f .$@.txt; fi; exit $$s

# How the cost of a frame grows with MACs, VNIs, peers and ports; two minutes on a machine
# that does nothing else.
growth:
	@$(GO) run ./bench/growth -json bench/results/growth.json -svg bench/results/growth.svg >.growth.txt; s=$$?; \
	if [ -s .growth.txt ]; then mv .growth.txt bench/results/growth.txt; else rm -f .growth.txt; fi; exit $$s

# Two whole end points under full load, as root: nothing may grow.
soak:
	$(GO) test ./bench/soak -count=1 -v -run '^TestSoak$$' -timeout 24h -soak.duration $(SOAKTIME) -soak.svg $(CURDIR)/bench/results/soak.svg

bgp-bench:
	$(GO) test -C bgp ./bench -count=1 -v -run '^TestBench$$' -timeout 30m -bgp.results $(CURDIR)/bench/results

discovery-bench:
	$(GO) test -C discovery . -count=1 -v -run '^TestConverge$$' -timeout 20m -discovery.results $(CURDIR)/bench/results

evpn-bench:
	$(GO) test -C evpn/bench . -count=1 -v -run '^Test(Bench|Growth)$$' -timeout 1h -evpn.results $(CURDIR)/bench/results

# Nodes of a flannel network beside the real flanneld, as root: how fast they follow leases. Seven minutes on a machine
# that does nothing else; flanneld is built before, if it is not in the cache.
flannel-bench:
	$(GO) test -C flannel -tags grpcnotrace ./bench -count=1 -v -run '^TestBench$$' -timeout 1h -flannel.results $(CURDIR)/bench/results

# What users install, into dist: tarballs, Debian packages and a container image, for amd64 and arm64. The version is
# the tag cmd/vX.Y.Z of the commit, and what is linked is what cmd/go.mod and release/go.mod say, not go.work.
release:
	GOWORK=off $(GO) run -C release . -source .. -out ../dist

# The eBPF object of offload, which is checked in: built again by Debian's clang, always the same to the byte. One that
# has changed replaces it, and is an error once, so that it is not forgotten to check it in. A test without a compiler
# knows by datapath.sum that the object is that of its sources.
BPF     = offload/internal/datapath/bpf
BPFCC   = 14.0.6
BPFWITH = -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Werror -nostdinc -fno-strict-aliasing -fno-ident -fdebug-compilation-dir=.
bpf:
	@clang-14 --version 2>/dev/null | grep -q 'version $(BPFCC)' || { echo "clang-14 must be $(BPFCC): packages clang-14 and llvm-14 of Debian 12"; exit 1; }
	@cd $(BPF) && clang-14 $(BPFWITH) -c datapath.c -o datapath.new && llvm-strip-14 -g datapath.new && \
		if cmp -s datapath.new datapath.o; then rm datapath.new; s=0; else mv datapath.new datapath.o; echo "datapath.o has changed"; s=1; fi && \
		sha256sum *.c *.h datapath.o >datapath.sum && exit $$s
