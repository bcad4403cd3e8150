// Package ast stands in for moa's: it names what an expression is made of.
package ast

// Visitor is called for each part of an expression.
type Visitor interface {
	Enter(expr Expr) (Visitor, error)
	Exit(expr Expr) (Expr, error)
}

// Expr is an expression.
type Expr interface {
	Walk(visitor Visitor) (Expr, error)
}

// Template is a part that is replaced by its value.
type Template struct{ Expr }
