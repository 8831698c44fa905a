// Right: two fixed-priority pickers, one of them masked.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [3:0] req,
  output logic [3:0] grant,
  output logic       busy
);

  reg  [3:0] order;
  reg  [4:0] age;
  wire [3:0] above = ~(order | (order - 4'd1));
  wire [3:0] upper = req & above;
  wire [3:0] pool = (upper != 0) ? upper : req;
  wire [3:0] pick = pool & (~pool + 4'd1);
  wire       stay = ((grant & req) != 0) && !(age[3] && ((req & ~grant) != 0));

  assign busy = (grant != 0);

  always @(posedge clk)
    if (reset) begin
      grant <= 0;
      order <= 4'b1000;
      age <= 0;
    end else if (stay) begin
      age <= age[3] ? age : age << 1;
    end else begin
      grant <= pick;
      age <= 5'd1;
      if (pick != 0) order <= pick;
    end

endmodule
