// Command mutants changes the product in one place and runs the tests that should notice; again and
// again, for a random sample of all such changes. A seed fixes the sample; an edit elsewhere leaves
// it as it is. What survives shows where tests are blind. Nothing in the tree is touched: what is
// built has an overlay.
//
//	go run ./test/mutants -sample 300 -seed 1
//
// All mutants of the sample are built at once, each behind a switch, and what is built is told
// which one is on by some bytes that are written into it, so that processes that it starts know,
// too. Each test is run once to see which mutants it reaches; a mutant is judged by tests that
// reach it: those of its own package, of the other folders that are changed, of all packages that
// import it. With -through the program is built with the switches, too, and more packages are
// tested with it. What has no switch, as it stands in a constant, is built by itself.
//
// A mutant is killed if a test fails twice, or doesn't end in time. Mutants that don't build are
// replaced by the next ones. Results are kept in a file, from which a run that was interrupted goes
// on; those of files that have changed since are made again.
package main
