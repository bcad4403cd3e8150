package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal opens a pseudo-terminal: the end of the person and that of the
// program.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// TestSecretIsNotWaitedFor: the first Ctrl-C at the prompt ends the command, and
// the terminal shows again what is typed.
func TestSecretIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	a := New(program, nil, program, nil)
	if !a.CanAsk() || !term.IsTerminal(int(program.Fd())) {
		t.Fatal("no terminal")
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := a.ReadSecret(ctx, "password")
		asked <- err
	}()
	if prompt, err := bufio.NewReader(person).ReadString(':'); err != nil {
		t.Fatalf("%q, %v", prompt, err)
	}
	for echoes(t, program) {
		runtime.Gosched()
	}
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if !echoes(t, program) {
		t.Error("the terminal does not echo")
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	if _, err := person.WriteString("secret\n"); err != nil {
		t.Fatal(err)
	}
	secret, err := New(program, nil, nil, nil).ReadSecret(t.Context(), "password")
	if err != nil || string(secret) != "secret" {
		t.Errorf("%q, %v", secret, err)
	}
}
