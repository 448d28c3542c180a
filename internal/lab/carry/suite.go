package carry

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// least is how many frames a suite has to have carried.
const least = 100

// A Suite runs the tests of a package as the environment variable DATAPATH says. It is for goleak.VerifyTestMain.
type Suite struct{ *testing.M }

// Run runs the tests and returns the exit code of the program.
func (s Suite) Run() int {
	how, whole := os.Getenv(datapath), false
	switch how {
	case "":
		return s.M.Run()
	case "all":
	case "needless":
		return needless(here().left)
	case "kernel":
		flag.Parse()
		if whole = flag.Lookup("test.run").Value.String() == ""; whole {
			set("test.run", here().run)
		}
		var skip []string
		for _, x := range here().left {
			skip = append(skip, x.test)
		}
		set("test.skip", skip)
	default:
		fmt.Printf("carry: %s=%s: must be kernel, all or needless\n", datapath, how)
		return 2
	}
	code := s.M.Run()
	n := carried.Load()
	fmt.Printf(total+"\n", n)
	if whole && code == 0 && n < least {
		fmt.Printf("carry: they must be %d or more, or nothing was tested\n", least)
		return 1
	}
	return code
}

// total is the last line of a run, which needless reads.
const total = "carry: %d frames were carried in all"

// here returns the list of the package whose tests these are: they run in its folder.
func here() list {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for pkg, l := range tests {
		if strings.HasSuffix(dir, "/"+pkg) {
			return l
		}
	}
	panic("carry: " + dir + " has no list")
}

func set(name string, tests []string) {
	if err := flag.Set(name, pattern(tests...)); err != nil {
		panic(err)
	}
}

// pattern matches tests by their names, for -test.run and -test.skip.
func pattern(tests ...string) string {
	var all []string
	for _, x := range tests {
		all = append(all, "^"+strings.ReplaceAll(x, "/", "$/^")+"$")
	}
	return strings.Join(all, "|")
}

// tries is how often a test that is left out may pass: for some it takes a ping at the wrong moment to fail.
const tries = 8

// needless runs the tests that are left out, and returns 1 if one need not be: it passes, and carries something.
func needless(list []leftOut) (code int) {
	said := regexp.MustCompile(strings.Replace(total, "%d", "([0-9]+)", 1))
	for _, x := range list {
		what := "passes"
		for n := 0; n < tries && what == "passes"; n++ {
			cmd := exec.Command(os.Args[0], "-test.run", pattern(x.test))
			cmd.Env = append(os.Environ(), datapath+"=all")
			out, err := cmd.CombinedOutput()
			found := said.FindSubmatch(out)
			if found == nil || strings.Contains(string(out), "no tests to run") {
				what = "does not run:\n" + string(out)
				code = 1
			} else if err != nil {
				what = "fails"
			} else if n, _ := strconv.Atoi(string(found[1])); n == 0 {
				what = "carries nothing"
			}
		}
		if what == "passes" {
			code = 1
		}
		fmt.Printf("carry: %s, left out, %s\n", x.test, what)
	}
	return code
}
