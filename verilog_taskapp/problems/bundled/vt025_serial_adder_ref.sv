// Reference of vt025_serial_adder: bit-serial adder.
module RefModule (
  input  logic clk,
  input  logic reset,
  input  logic valid,
  input  logic first,
  input  logic a,
  input  logic b,
  output logic sum,
  output logic carry
);

  wire carry_in = carry && !first;

  always_ff @(posedge clk) begin
    if (reset)
      {carry, sum} <= 2'b00;
    else if (valid)
      {carry, sum} <= {1'b0, a} + {1'b0, b} + {1'b0, carry_in};
  end

endmodule
