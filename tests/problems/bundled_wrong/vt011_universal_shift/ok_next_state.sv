// Right: next state and register apart.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [1:0] op,
  input  logic       serial_in,
  input  logic [7:0] data,
  output logic [7:0] q,
  output logic       serial_out
);

  reg [7:0] next;

  always @* begin
    next = q;
    if (op[1] & op[0])  next = data;
    if (op[1] & ~op[0]) next = (q << 1) | {7'd0, serial_in};
    if (~op[1] & op[0]) next = (q >> 1) | {serial_in, 7'd0};
  end

  always @(posedge clk) q <= next & {8{~reset}};

  assign serial_out = (^op) & (op[0] ? q[0] : q[7]);

endmodule
