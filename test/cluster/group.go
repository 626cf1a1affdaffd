//go:build unix

package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// group is the process group of one cluster's components, which never outlives the process that made it.
//
// Linux could kill the children with their parent (PR_SET_PDEATHSIG), but that is tied to the thread that forked,
// needs a locked thread for the life of the cluster, exists on Linux only, and leaves the data folder behind. Here a
// pipe does it on every Unix: this process alone holds the write end, and the kernel closes it when the process ends,
// by whatever signal. A shell, the watchdog, waits for that and then kills the group and removes the folder. There is
// no moment at which a component escapes: between fork and exec it holds the write end itself, so the watchdog cannot
// wake before the component has joined the group.
//
// Both shells and the components are outside the terminal's foreground group. Ctrl-C reaches only the owner, which
// either stops the cluster in order or dies and leaves the rest to the watchdog.
type group struct {
	// anchor is the group's first process. It keeps the group's number from being given to somebody else.
	anchor   *exec.Cmd
	watchdog *exec.Cmd
	lifeline *os.File
}

const (
	anchorScript = `trap '' INT TERM HUP
read -r _`

	// watchdogScript takes the group and the folder to remove, which may be empty. A killed process may still finish
	// the system call it is in and put one more file into the folder, hence the second try.
	watchdogScript = `trap '' INT TERM HUP
read -r _
kill -KILL "-$1" 2>/dev/null
[ -n "$2" ] || exit 0
tries=0
until rm -rf -- "$2" 2>/dev/null || [ "$tries" -ge 50 ]; do
  sleep 0.1
  tries=$((tries + 1))
done`
)

// newGroup makes an empty group. If this process ends without closing it, the folder remove goes with it; empty means
// that no folder does.
func newGroup(remove string) (*group, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the watchdog's pipe: %w", err)
	}
	defer read.Close()

	g := &group{lifeline: write}
	g.anchor = shell(read, anchorScript)
	if err := g.anchor.Start(); err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("starting the process group: %w", err)
	}
	g.watchdog = shell(read, watchdogScript, strconv.Itoa(g.anchor.Process.Pid), remove)
	if err := g.watchdog.Start(); err != nil {
		_ = write.Close()
		_ = g.anchor.Wait()
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return g, nil
}

// shell runs a script in a process group of its own. It keeps none of our output files open: whoever runs us may wait
// for them to be closed.
func shell(stdin io.Reader, script string, args ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Stdin = stdin
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// start starts the command as a member of the group.
func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.anchor.Process.Pid}
	return cmd.Start()
}

// close kills what is left of the group and ends the watchdog, which removes the folder.
func (g *group) close() {
	_ = g.lifeline.Close()
	// Both end by themselves; how they ended does not matter.
	_ = g.watchdog.Wait()
	_ = g.anchor.Wait()
}
