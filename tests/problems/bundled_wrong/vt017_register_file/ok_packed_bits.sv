// Right: one packed vector and a function for both ports.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       we,
  input  logic [2:0] waddr,
  input  logic [7:0] wdata,
  input  logic [2:0] raddr_a,
  input  logic [2:0] raddr_b,
  output logic [7:0] rdata_a,
  output logic [7:0] rdata_b
);

  reg [63:0] store;

  function automatic [7:0] view(input [63:0] all, input [2:0] at, input hit, input [7:0] fresh);
    begin
      view = all[{at, 3'b000} +: 8];
      if (hit) view = fresh;
      if (at == 3'd0) view = 8'h00;
    end
  endfunction

  always @(posedge clk) begin
    if (we & |waddr) store[{waddr, 3'b000} +: 8] <= wdata;
    if (reset) store <= 64'd0;
  end

  assign rdata_a = view(store, raddr_a, we & ~reset & (waddr == raddr_a), wdata);
  assign rdata_b = view(store, raddr_b, we & ~reset & (waddr == raddr_b), wdata);

endmodule
